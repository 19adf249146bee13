"""What ``runs``, ``sweep`` and ``export`` print, from a database and from a server, for people and for machines."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from patient_http import http_answer
from powerlab.cli import main
from powerlab.cli.output import console
from powerlab.domain.run import Run
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.wire import decode
from powerlab.store import open_store
from powerlab.store.reads import queries
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, capabilities, device, make_trace, runs_of
from store_writing import take, upload, upload_trace

Source = tuple[str, str]


@pytest.fixture(scope="module")
def stored(only_server: Any) -> tuple[str, list[Run]]:
    """Put a sweep with five runs into the server's database, without the server."""
    with closing(open_store(only_server.database)) as store:
        with store.write() as session:
            code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
            session.flush()
            request = EnrolRequest(code=code, device=device("a-board-with-a-long-name"), capabilities=capabilities())
            device_id = enrol(session, request, store.clock()).device_id
        with store.write() as session:
            sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())
        held, runs = take(store, device_id), runs_of(sweep_id)[:5]
        for run in runs:
            upload(store, device_id, held, run)
            upload_trace(store, device_id, held, run.id, make_trace(count=20))
    return sweep_id, runs


@pytest.fixture(params=["--database", "--server"])
def source(request: pytest.FixtureRequest, server: Any, stored: object) -> Source:
    return request.param, str(server.database) if request.param == "--database" else server.url


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as at a terminal of 80 columns."""
    monkeypatch.setattr(console, "table_console", lambda: Console(width=80))
    for module in ("commands.runs", "commands.sweep.requests"):
        monkeypatch.setattr(f"powerlab.cli.{module}.table_console", lambda: Console(width=80))


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(*words: str) -> str:
        assert main(words) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return show


@pytest.mark.campaign
def test_runs_for_machines(source: Source, stored: Any, show: Any) -> None:
    sweep_id, runs = stored
    assert decode(show("runs", "list", "--json", "--sweep", sweep_id, *source), list[Run]) == runs
    assert decode(show("runs", "list", "--json", "--sweep", sweep_id, "--verdict", "valid", *source), list[Run]) == []
    assert decode(show("runs", "show", runs[2].id[:13], "--json", *source), Run) == runs[2]


def test_runs_for_people(source: Source, stored: Any, show: Any) -> None:
    sweep_id, runs = stored
    table = show("runs", "list", "--sweep", sweep_id, *source)
    assert all(run.id in table for run in runs)
    assert table.count("measured") == 2 * len(runs), "throughput and efficiency"
    assert "current, repeat 1" in table
    one = show("runs", "show", runs[0].id, *source)
    for words in (runs[0].id, "throttled", "1.2 GHz of 2.2 GHz", "measured", "ina3221:VDD_GPU"):
        assert words in one


def test_no_heading_is_cut_at_80_columns(stored: Any, server: Any, show: Any, narrow: None) -> None:
    sweep_id, runs = stored
    database = ("--database", str(server.database))
    tables = {
        show("runs", "list", "--sweep", sweep_id, *database): ("run", "started", "verdict", "img/s", "img/s/W"),
        show("runs", "show", runs[0].id, *database): ("metric", "value", "unit", "provenance"),
        show("sweep", "list", "--server", server.url): ("sweep", "device", "state", "runs", "created"),
    }
    for table, headings in tables.items():
        lines = table.splitlines()
        heads = next(line.split() for line in lines if line.split() == list(headings))
        assert heads
        assert max(map(len, lines[1:])) <= 80
        assert "…" not in table
    listed = next(iter(tables))
    assert all(any(line.startswith(run.id) for line in listed.splitlines()) for run in runs)


def test_sweeps(stored: Any, server: Any, show: Any) -> None:
    sweep_id, _ = stored
    found = json.loads(show("sweep", "list", "--json", "--server", server.url))
    (mine,) = [one for one in found if one["id"] == sweep_id]
    assert (mine["stored_run_count"], mine["planned_run_count"]) == (5, 24)
    shown = show("sweep", "show", sweep_id[:13], "--server", server.url)
    assert f"{sweep_id} on a-board-with-a-long-name, running, 5/24 runs" in shown
    assert "img/s/W" in shown


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_an_export_equals_the_runs(source: Source, stored: Any, show: Any, tmp_path: Path, kind: str) -> None:
    sweep_id, runs = stored
    words = ("export", "--format", kind, "--sweep", sweep_id, *source)
    printed = show(*words)
    assert show(*words, "--output", str(tmp_path / "out")) == ""
    assert (tmp_path / "out").read_text() == printed
    if kind == "ndjson":
        assert [decode(line, Run) for line in printed.splitlines()] == runs
        return
    rows = list(csv.DictReader(io.StringIO(printed)))
    wanted = [(run, metric) for run in runs for metric in run.metrics]
    assert len(rows) == len(wanted)
    for row, (run, metric) in zip(rows, wanted, strict=True):
        assert (row["run_id"], row["metric"], row["provenance"]) == (run.id, metric.name, metric.provenance)
        assert (row["mode"], int(row["threads"])) == (run.point.mode, run.point.threads)
        assert float(row["value"]) == metric.value
        assert (row["low"], row["high"]) == tuple("" if x is None else repr(x) for x in (metric.low, metric.high))
        assert row["power_scope"] == run.total.scope


def test_the_export_of_the_server_is_that_of_the_command(stored: Any, server: Any, show: Any) -> None:

    sweep_id, _ = stored
    for kind in ("csv", "ndjson"):
        address = f"{server.url}/api/v1/exports/runs?format={kind}&sweep_id={sweep_id}"
        served = http_answer("GET", address).data.decode()
        command = show("export", "--format", kind, "--sweep", sweep_id, "--database", str(server.database))
        assert served == command


def test_an_empty_database(tmp_path: Path, show: Any) -> None:
    database = ("--database", str(tmp_path / "empty.db"))
    open_store(tmp_path / "empty.db").close()
    assert show("runs", "list", *database).split() == ["run", "started", "verdict", "img/s", "img/s/W"]
    assert json.loads(show("runs", "list", "--json", *database)) == []
    assert show("export", *database).startswith("run_id,sweep_id,")
    assert show("export", "--format", "ndjson", *database) == ""


@pytest.mark.parametrize("run_id", ["../sweeps", "x?limit=1", "a b", "%00", "..", "#"])
def test_an_odd_identifier_is_not_an_address(server: Any, capsys: pytest.CaptureFixture[str], run_id: str) -> None:
    assert main(("runs", "show", run_id, "--server", server.url)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("powerlab: ")


def test_a_sweep_whose_results_file_cannot_be_made_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "sweeps").write_text("in the way")
    assert main(("profile", "mobilenetv2", "--threads", "1", "--database", str(tmp_path / "p.db"))) == 2
    assert "the results cannot be kept" in capsys.readouterr().err
    with closing(open_store(tmp_path / "p.db")) as store, store.session() as session:
        (sweep,) = queries.list_sweeps(session)
    assert sweep.state == "failed"
    assert "the results cannot be kept" in sweep.detail


def test_both_commands_ask_for_a_plan_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    def options(*words: str) -> list[str]:
        with pytest.raises(SystemExit):
            main((*words, "--help"))
        text = capsys.readouterr().out
        part = text[text.index("sweep:") :].split("\n\n")[0]
        return part.split()

    # Where no option means a machine by it, a processor may be called a device, as other tools do.
    ours = " ".join(options("profile")).replace("--processor NAME,..., --device NAME,...", "--processor NAME,...")
    assert ours.split() == options("sweep", "create")
