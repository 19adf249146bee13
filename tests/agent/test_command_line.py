"""The commands around a server: a real sweep of a simulated board, and what goes wrong."""

from __future__ import annotations

import csv
import io
import json
import signal
import socket
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from forked_program import run_forked
from patient_http import http_answer
from powerlab.cli import main
from powerlab.domain.run import Run
from powerlab.protocol.wire import decode
from powerlab.store import open_store


def powerlab(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command: an agent and a demo as processes, which they are; the others here, which is much quicker."""
    if words[0] in {"agent", "demo"}:
        done = run_forked(["-m", "powerlab.cli", *words], timeout=240)
    else:
        done = _run_here(*words)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def _run_here(*words: str) -> subprocess.CompletedProcess[str]:
    before = signal.getsignal(signal.SIGTERM)
    bytes_too = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with redirect_stdout(bytes_too) as output, redirect_stderr(io.StringIO()) as errors:
        status = main(words)
        output.flush()
    signal.signal(signal.SIGTERM, before)
    return subprocess.CompletedProcess(words, status, output.buffer.getvalue().decode(), errors.getvalue())


def refusal(*words: str) -> str:
    line = powerlab(*words, status=2).stderr.strip().splitlines()[-1]
    assert line.startswith("powerlab: ")
    return line


def test_a_simulated_board_from_enrolment_to_export(server: Any, tmp_path: Path) -> None:
    state, board = str(tmp_path / "xavier"), "jetson-agx-xavier"
    code = server.banner.split()[-1]
    enrol = ("agent", "enrol", "--server", server.url, "--state", state, "--code", code)
    said = powerlab(*enrol, "--board", board, "--name", "xavier").stdout
    assert said.startswith("xavier is enrolled")
    assert said.endswith(f"start its agent with: powerlab agent run --state {state}\n")
    asked = ("mobilenetv2", "--device", "xavier", "--modes", "MAXN", "--threads", "1")
    brief = ("--duration", "0.8", "--warm-up", "0.1", "--idle", "0.5")
    created = json.loads(powerlab("sweep", "create", *asked, *brief, "--server", server.url, "--json").stdout)
    powerlab("agent", "run", "--once", "--state", state)
    shown = json.loads(powerlab("sweep", "watch", created["id"][:8], "--server", server.url, "--json").stdout)
    assert shown["sweep"]["state"] == "done"
    assert shown["sweep"]["stored_run_count"] == 3
    (summary,) = shown["summaries"]
    metrics = {metric["name"]: metric for metric in summary["metrics"]}
    assert "power_w" in metrics, summary["findings"]
    assert metrics["power_w"]["provenance"] == "simulated"
    assert metrics["power_w"]["value"] > 1.0
    table = powerlab("sweep", "show", created["id"], "--server", server.url).stdout
    assert "simulated" in table
    assert "MAXN" in table
    check_reading(server, created["id"], tmp_path)


def check_reading(server: Any, sweep_id: str, tmp_path: Path) -> None:
    """The same runs come from the server and from the database."""
    database = ("--database", str(server.database))
    chosen = ("--sweep", sweep_id)
    runs = decode(powerlab("runs", "list", "--json", *chosen, *database).stdout, list[Run])
    assert runs == decode(powerlab("runs", "list", "--json", *chosen, "--server", server.url).stdout, list[Run])
    assert len(runs) == 3
    assert min(server.trace_counts(sweep_id)) >= 1
    assert decode(powerlab("runs", "show", runs[0].id, "--json", *database).stdout, Run) == runs[0]
    assert "simulated" in powerlab("runs", "show", runs[0].id, "--server", server.url).stdout
    listed = powerlab("runs", "list", *database).stdout
    assert all(run.id in listed for run in runs)
    assert sweep_id in powerlab("sweep", "list", "--server", server.url).stdout
    refusal = powerlab("compare", sweep_id[:8], "--server", server.url, status=2).stderr
    assert "fewer than two points with usable figures" in refusal
    shown = ("sweep", "show", sweep_id)
    assert powerlab(*shown, "--server", server.url).stdout == powerlab(*shown, *database).stdout
    output = tmp_path / "runs.csv"
    powerlab("export", "--output", str(output), "--sweep", sweep_id, *database)
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["provenance"] for row in rows} == {"simulated"}
    assert len(rows) == sum(len(run.metrics) for run in runs)
    lines = powerlab("export", "--format", "ndjson", *chosen, "--server", server.url).stdout.splitlines()
    assert [decode(line, Run) for line in lines] == runs


def test_the_dashboard_is_served_beside_the_api(server: Any) -> None:

    page = http_answer("GET", server.url + "/")
    assert page.status == 200
    assert "text/html" in page.headers["content-type"]


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "choose another with --port" in refusal("serve", "--port", port, "--database", str(tmp_path / "p.db"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("serve", "--port", "0", "--database", "/nowhere/p.db"), "cannot be written"),
        (("serve", "--port", "99999", "--database", "{tmp}/p.db"), "99999"),
        (("serve", "--port", "0", "--host", "0.0.0.0", "--database", "{tmp}/p.db"), "POWERLAB_OPERATOR_TOKEN"),
        (("runs", "list", "--database", "{tmp}/none.db"), "there is no database"),
        (("export", "--database", "{tmp}/none.db"), "there is no database"),
        (("sweep", "list", "--server", "http://127.0.0.1:1"), "no powerlab server answers"),
        (("agent", "run", "--state", "{tmp}/none"), "agent enrol"),
        (("demo", "--state", "/proc/none"), "--state"),
        (("demo", "--state", "{tmp}/d", "--database", "/nowhere/p.db"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in refusal(*(word.replace("{tmp}", str(tmp_path)) for word in words))


def test_reading_says_what_is_not_there(tmp_path: Path) -> None:
    database = str(tmp_path / "p.db")
    open_store(database).close()
    assert "there is no run" in refusal("runs", "show", "x", "--database", database)
    assert "there is no sweep" in refusal("export", "--sweep", "x", "--database", database)
    assert "cannot write --output" in refusal("export", "--output", "/nowhere/f.csv", "--database", database)
    assert json.loads(powerlab("runs", "list", "--json", "--database", database).stdout) == []


def test_a_sweep_needs_a_device_that_is_there(server: Any, identity: Any) -> None:
    address = ("--server", server.url)
    mine = ("--device", identity.device_name)
    assert "'nobody'" in refusal("sweep", "create", "resnet50", "--device", "nobody", *address)
    assert "4 cores" in refusal("sweep", "create", "resnet50", "--threads", "64", *mine, *address)
    assert "there is no sweep 'abc'" in refusal("sweep", "show", "abc", *address)
