"""Where commands read: ``--from``, POWERLAB_SERVER, the local database; and what an identifier stands for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from powerlab.cli import main
from powerlab.cli.stored.local_database import begin
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.run import Run
from powerlab.domain.selector import Selector
from powerlab.protocol.labs import CampaignRequest, Each
from powerlab.protocol.wire import decode
from powerlab.store import open_store
from powerlab.store.writes.campaigns import submit_campaign
from quick_server import quick_server
from server_examples import PLAN, capabilities, device, runs_of

SMALL = replace(PLAN, threads=(1, 2), batch_sizes=(1,), modes=("current",))


@dataclass(frozen=True)
class World:
    """One sweep in a database, behind a server and in a file, and a campaign of one more sweep."""

    database: str
    server: str
    file: str
    sweep: str
    runs: tuple[Run, ...]
    campaign: str
    job: str

    def place(self, kind: str) -> str:
        return {"database": self.database, "server": self.server, "file": self.file}[kind]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sources")
    path = folder / "runs.db"
    with quick_server(path) as (server, store):
        held = begin(store, device(), capabilities(), SMALL)
        results = ResultsFile(folder, held.sweep_id, device(), SMALL)
        runs = tuple(runs_of(held.sweep_id, SMALL))
        for run in runs:
            held.add(run, ())
            results.add(run)
        results.close()
        held.finish(None)
        with store.write() as session:
            request = CampaignRequest(each=Each.DEVICE, of=Selector(board="generic"), plan=SMALL)
            campaign, _ = submit_campaign(session, request, store.clock(), by="me", key=None)
        yield World(
            database=str(path),
            server=server,
            file=str(results.path),
            sweep=held.sweep_id,
            runs=runs,
            campaign=campaign,
            job=held.job_id,
        )


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    assert main(words) == 0, capsys.readouterr().err
    captured = capsys.readouterr()
    return captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("powerlab: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("kind", ["database", "server", "file"])
def test_every_source_gives_the_same_answers_and_is_named(
    world: World, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--from", world.place(kind))
    name = f"source: {kind} {world.place(kind)}, "
    listed, source = said(capsys, "runs", "list", "--json", "--sweep", world.sweep[:8], *place)
    assert decode(listed, list[Run]) == list(world.runs)
    assert source == f"{name}{len(world.runs)} runs\n"
    one = world.runs[2]
    shown, source = said(capsys, "runs", "show", one.id[:13], "--json", *place)
    assert decode(shown, Run) == one
    assert source == f"{name}run {one.id}\n"
    lines, _ = said(capsys, "export", "--format", "ndjson", "--sweep", world.sweep[:8], *place)
    assert [decode(line, Run) for line in lines.splitlines()] == list(world.runs)
    sweeps, _ = said(capsys, "sweep", "list", "--json", "--state", "finished", "--device", "board-1", *place)
    assert [found["id"] for found in json.loads(sweeps)] == [world.sweep]
    shown, _ = said(capsys, "sweep", "show", world.sweep[:8], "--json", *place)
    assert [len(json.loads(shown)["summaries"]), json.loads(shown)["sweep"]["stored_run_count"]] == [2, 6]
    table, source = said(capsys, "compare", world.sweep[:8], "--metric", "throughput_img_per_s", *place)
    assert "Throughput" in table
    assert source == f"{name}sweep {world.sweep}, 6 runs\n"


def test_without_an_option_the_server_of_the_environment_is_read_else_what_was_measured_here(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    assert "this machine has measured nothing yet" in refused(capsys, "runs", "list")
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / Path(world.file).name).write_bytes(Path(world.file).read_bytes())
    assert said(capsys, "runs", "list")[1] == f"source: results files in {tmp_path}/sweeps, 6 runs\n"
    open_store(tmp_path / "powerlab.db").close()
    assert said(capsys, "runs", "list")[1] == f"source: database {tmp_path}/powerlab.db, 0 runs\n"
    assert world.sweep in said(capsys, "compare", world.sweep[:8], "--metric", "latency_p50_ms")[1]
    monkeypatch.setenv("POWERLAB_SERVER", world.server)
    assert said(capsys, "runs", "list")[1] == f"source: server {world.server}, 6 runs\n"
    assert said(capsys, "runs", "list", "--from", world.database)[1].startswith("source: database ")


@pytest.mark.parametrize("kind", ["database", "server"])
def test_an_identifier_of_another_kind_is_understood_or_explained(
    world: World, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--from", world.place(kind))
    run = world.runs[0].id[:13]
    point = world.runs[0].point.id
    assert world.sweep in said(capsys, "sweep", "show", world.job, *place)[0]
    assert "queued, 0/6 runs" in said(capsys, "sweep", "show", world.campaign[:13], *place)[0]
    assert len(said(capsys, "sweep", "list", "--campaign", world.campaign[:13], *place)[0].splitlines()) == 3
    assert said(capsys, "runs", "list", "--sweep", world.campaign, *place)[1].endswith(", 0 runs\n")
    for words, sentence in {
        ("compare", run): f"{run} is no sweep, but a run of sweep {world.sweep}; `powerlab runs show {run}` shows it.",
        ("runs", "show", world.sweep[:13]): "is no run, but a sweep; `powerlab runs list --sweep ",
        ("audit", world.campaign[:13]): "is no run, but a campaign; `powerlab sweep list --campaign ",
        ("sweep", "show", "board-1"): "board-1 is no sweep, but the device board-1; `powerlab sweep list --device ",
        ("sweep", "show", point): "is no sweep, but a point",
        ("sweep", "show", f"{world.sweep[:8]}x"): f"(did you mean {world.sweep[:9]}?); `powerlab sweep list`",
        ("sweep", "list", "--device", "board-2"): "(did you mean board-1?); `powerlab devices list`",
    }.items():
        assert sentence in refused(capsys, *words, *place)


def test_an_ambiguous_beginning_lists_the_candidates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs.db"
    with closing(open_store(path)) as store:
        held = begin(store, device(), capabilities(), SMALL)
        runs = [replace(run, id=f"abcdef0{place}-x") for place, run in enumerate(runs_of(held.sweep_id, SMALL)[:2])]
        for run in runs:
            held.add(run, ())
        held.finish(None)
    error = refused(capsys, "runs", "show", "abcd", "--from", str(path))
    assert "several runs begin with 'abcd': abcdef00-x, abcdef01-x; give more characters." in error
    assert said(capsys, "runs", "show", "abcdef01", "--from", str(path))[1].endswith("run abcdef01-x\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("runs", "list", "--from", "{folder}/none.db"), "there is no database {folder}/none.db"),
        (("runs", "list", "--from", "localhost:8765"), "or the http:// address of a server"),
        (("audit", "abc", "--from", "{file}"), "there is no run 'abc' in file {file}"),
        (("audit", "{run}", "--from", "{file}"), "results files hold no samples"),
        (("export", "--traces", "--sweep", "{sweep}", "--from", "{file}"), "results files hold no traces"),
        (("runs", "list", "--from", "{file}", "--server", "http://x"), "a command reads one source"),
        (("compare", "{sweep}", "--from", "{odd}"), "{odd} holds no sweep"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_in_one_sentence(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "odd.json").write_text("[]")
    names = {"folder": tmp_path, "file": world.file, "run": world.runs[0].id, "sweep": world.sweep}
    names["odd"] = tmp_path / "odd.json"
    assert sentence.format(**names) in refused(capsys, *(word.format(**names) for word in words))
