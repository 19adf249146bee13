"""``powerlab gate``, ``baseline`` and ``trends``, over results files and a database."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.cli import EXIT_USAGE, main
from powerlab.cli.stored.local_database import begin
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import Finish
from powerlab.store import open_store
from powerlab.store.writes.jobs import finish
from server_examples import capabilities, device
from tests.analysis.gate_sweeps import series

PLAN = SweepPlan(models=("resnet50",), threads=(1,))
OLD, NEW = {"kernel": "5.10.104", "engine": "1.0"}, {"kernel": "5.10.120", "engine": "1.0"}
PASS, LOSS, OPEN = 0, 1, 3


def write(folder: Path, sweeps, made_on: str = "board-1") -> str:
    for runs in sweeps:
        results = ResultsFile(folder, runs[0].sweep_id, device(made_on), PLAN)
        for run in runs:
            results.add(run)
        results.close()
    return str(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return folders of results files: a baseline, the same again, a loss of 6 %, and very different days."""
    folder = tmp_path_factory.mktemp("gate")
    return {
        "base": write(folder / "base", series(8, name="base", conditions=OLD)),
        "same": write(folder / "same", series(8, name="same", seed=1, conditions=NEW)),
        "lost": write(folder / "lost", series(8, name="lost", seed=2, loss=0.06, conditions=NEW)),
        "wild": write(folder / "wild", series(3, name="wild", seed=3, between=0.05, conditions=OLD)),
    }


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Return a database's path, and in it the sweeps of one device: eight as they were, eight that lost 6 %."""
    path = tmp_path_factory.mktemp("kept") / "runs.db"
    store, names = open_store(path), {}
    for title, words in {"before": {"conditions": OLD}, "after": {"loss": 0.06, "seed": 1, "conditions": NEW}}.items():
        year = "2026" if title == "before" else "2027"
        names[title] = []
        for runs in series(8, **words):
            held = begin(store, device(), capabilities(), PLAN)
            for run in runs:
                started = f"{year}{run.started_at[4:]}"
                held.add(replace(run, id=str(uuid.uuid4()), sweep_id=held.sweep_id, started_at=started), ())
            assert held.broken is None
            _finish(held)
            names[title].append(held.sweep_id)
    store.close()
    return str(path), names


def _finish(held) -> None:
    with held.store.write() as session:
        message = Finish(fencing_token=held.fencing_token, state="done")
        finish(session, held.device_id, held.job_id, message, held.store.clock())


@pytest.fixture(autouse=True)
def nothing_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("POWERLAB_SERVER", raising=False)


def said(capsys, *words, status=0):
    assert main(words) == status
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(words) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    sentences = [line for line in captured.err.splitlines() if line.startswith("powerlab: ")]
    assert len(sentences) == 1
    return sentences[0]


def test_each_verdict_has_its_status_and_its_sentence(folders, capsys):
    base = ("--baseline", folders["base"])
    assert said(capsys, "gate", folders["same"], *base).startswith("Pass: a loss of 2 % is ruled out for all 3")
    lost = said(capsys, "gate", folders["lost"], *base, status=LOSS)
    assert lost.startswith("Loss: 3 of 3 figures of resnet50 on board-1")
    assert "What differs: kernel: 5.10.104 → 5.10.120." in lost
    wild = said(capsys, "gate", folders["wild"], *base, status=OPEN)
    assert wild.startswith("Not enough data: for 3 of 3")
    assert "sweeps on each side, in turns" in wild


def test_a_larger_loss_may_be_allowed(folders, capsys):
    words = ("gate", folders["lost"], "--baseline", folders["base"], "--metric", "throughput_img_per_s")
    said(capsys, *words, "--max-loss", "5%", status=LOSS)
    assert said(capsys, *words, "--max-loss", "9%").startswith("Pass")


def test_single_files_are_sweeps_too(folders, capsys):
    one, other = f"{folders['same']}/same-0.ndjson", f"{folders['base']}/base-0.ndjson"
    text = said(capsys, "gate", one, "--baseline", other, status=OPEN)
    assert "One occasion on each side does not show how much they differ" in text


def test_markdown_is_a_table_for_a_pull_request(folders, capsys, tmp_path):
    words = ("gate", folders["lost"], "--baseline", folders["base"])
    text = said(capsys, *words, "--markdown", "-", status=LOSS)
    lines = text.splitlines()
    assert lines[0] == "### ❌ powerlab gate"
    table = [line for line in lines if line.startswith("|")]
    assert len({line.count(" | ") for line in table}) == 1
    assert len(table) == 5
    assert "measured" in table[2]
    said(capsys, *words, "--markdown", str(tmp_path / "gate.md"), status=LOSS)
    assert (tmp_path / "gate.md").read_text(encoding="utf-8") == text


def test_names_of_anybodys_choosing_do_not_break_the_markdown(capsys, tmp_path):
    base = write(tmp_path / "a", series(3, name="a"), "rack|3 <b> @ada")
    same = write(tmp_path / "b", series(3, name="b", seed=1), "rack|3 <b> @ada")
    text = said(capsys, "gate", same, "--baseline", base, "--markdown", "-")
    assert "rack\\|3 &lt;b> @&#8203;ada" in text


def test_json_says_everything(folders, capsys):
    document = json.loads(said(capsys, "gate", folders["lost"], "--baseline", folders["base"], "--json", status=LOSS))
    assert (document["verdict"], document["max_loss"], document["found_loss"]) == ("loss", 0.02, pytest.approx(0.03))
    assert len(document["baseline_sweeps"]) == len(document["candidate_sweeps"]) == 8
    for row in document["rows"]:
        assert row["loss"]["low"] < row["loss"]["part"] < row["loss"]["high"]
        assert row["verdict"] == "loss"
    assert document["differences"] == [{"what": "kernel", "before": "5.10.104", "after": "5.10.120"}]


def test_a_plan_asks_for_sweeps_that_are_then_enough(folders, capsys):
    document = json.loads(said(capsys, "gate", "--plan", "--baseline", folders["base"], "--json"))
    assert document["sweeps_needed"] == max(row["sweeps_needed"] for row in document["rows"]) <= 16
    text = said(capsys, "gate", "--plan", "--baseline", folders["base"])
    assert f"Measure {document['sweeps_needed']} sweeps of the baseline" in text
    harder = json.loads(said(capsys, "gate", "--plan", "--baseline", folders["base"], "--max-loss", "1", "--json"))
    assert harder["sweeps_needed"] > document["sweeps_needed"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--max-loss", "much"), "--max-loss much is no loss in per cent"),
        (("--max-loss", "0%"), "give a number above 0"),
        (("--max-loss", "-3"), "give a number above 0"),
        (("--max-loss", "nan"), "give a number above 0"),
        (("--max-loss", "2%", "--find", "1%"), "--find 1% is not above --max-loss 2%"),
        (("--metric", "brightness"), "'brightness'"),
        (("--metric", "end_temperature_c"), "has no ratios to judge"),
        (("--json", "--markdown", "-"), "both write to standard output"),
        (("--plan",), "--plan looks at the baseline alone"),
        (("--markdown", "/nowhere/gate.md"), "cannot write --markdown /nowhere/gate.md"),
        (("--baseline", "nothing"), "there is no baseline, sweep or file 'nothing'"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(folders, capsys, words, sentence):
    assert sentence in refused(capsys, "gate", folders["same"], "--baseline", folders["base"], *words)


def test_sides_that_cannot_be_compared_are_refused(folders, capsys, tmp_path):
    elsewhere = write(tmp_path / "elsewhere", series(2, name="e"), "board-2")
    assert "different devices (board-1, board-2)" in refused(capsys, "gate", elsewhere, "--baseline", folders["base"])
    assert "is part of the baseline" in refused(capsys, "gate", folders["base"], "--baseline", folders["base"])
    (tmp_path / "empty").mkdir()
    assert "holds no results file" in refused(capsys, "gate", str(tmp_path / "empty"), "--baseline", folders["base"])
    assert "name at least one" in refused(capsys, "gate", "--baseline", folders["base"])


def test_a_sweep_without_valid_runs_is_refused(folders, capsys, tmp_path):
    hot = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="hot")
    runs = [replace(run, verdict=Verdict.FLAGGED, findings=(hot,)) for run in series(1, name="hot")[0]]
    assert "no valid run" in refused(capsys, "gate", write(tmp_path / "hot", [runs]), "--baseline", folders["base"])


def test_a_named_baseline_is_set_listed_used_and_removed(database, capsys):
    path, names = database
    source = ("--from", path)
    assert "there is no baseline" in said(capsys, "baseline", "list", *source)
    assert "there is no baseline, sweep or file 'main'" in refused(capsys, "gate", names["after"][0], *source)
    said(capsys, "baseline", "set", "main", *names["before"][:3], *source)
    said(capsys, "baseline", "add", "main", *names["before"][3:], *source)
    (listed,) = json.loads(said(capsys, "baseline", "list", "--json", *source))
    assert [sweep["sweep_id"] for sweep in listed["sweeps"]] == names["before"]
    assert said(capsys, "baseline", "list", *source).count("board-1") == 8
    said(capsys, "gate", *names["after"], *source, status=LOSS)
    assert "part of the baseline" in refused(capsys, "gate", names["before"][0], *source)
    assert "the baselines are: main" in refused(capsys, "gate", names["after"][0], "--baseline", "man", *source)
    said(capsys, "baseline", "set", "main", names["after"][0], *source)
    (listed,) = json.loads(said(capsys, "baseline", "list", "--json", *source))
    assert [sweep["sweep_id"] for sweep in listed["sweeps"]] == names["after"][:1]
    said(capsys, "baseline", "remove", "main", *source)
    assert "no baseline 'main'" in refused(capsys, "baseline", "remove", "main", *source)


def test_a_baseline_of_another_device_is_no_baseline(database, folders, capsys, tmp_path):
    path, names = database
    said(capsys, "baseline", "set", "other", names["before"][0], "--from", path)
    elsewhere = write(tmp_path / "elsewhere", series(2, name="e"), "board-2")
    sentence = refused(capsys, "gate", elsewhere, "--baseline", "other", "--from", path)
    assert "the baseline 'other' has no sweep of board-2, only of board-1" in sentence


def test_files_keep_no_names(folders, capsys):
    sentence = refused(capsys, "baseline", "list", "--from", f"{folders['base']}/base-0.ndjson")
    assert "kept in a database or on a server" in sentence


def test_trends_show_the_change_and_what_changed_with_it(database, capsys):
    path, names = database
    text = said(capsys, "trends", "--model", "resnet50", "--from", path)
    assert text.count("kernel: 5.10.104 → 5.10.120") == 3
    assert names["after"][0] in text
    assert "16 sweeps from 2026-01-01 to 2027-01-08" in text
    document = json.loads(
        said(capsys, "trends", "--model", "resnet50", "--metric", "throughput_img_per_s", "--json", "--from", path)
    )
    (trend,) = document
    assert len(trend["values"]) == 16
    (change,) = trend["changes"]
    assert change["first_after"] == names["after"][0]
    few = said(capsys, "trends", "--model", "resnet50", "--limit", "3", "--from", path)
    assert "No change can be found yet" in few


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "nothing"), "no sweep of 'nothing' is stored"),
        (("--model", "resnet50", "--device", "board-2"), "there are: board-1"),
        (("--model", "resnet50", "--metric", "brightness"), "'brightness'"),
        (("--model", "resnet50", "--limit", "0"), "leaves no sweep"),
        (("--model", "resnet50", "--metric", "server_queries_per_s"), "no sweep has a valid run"),
    ],
)
def test_trends_of_nothing_are_refused(database, capsys, words, sentence):
    assert sentence in refused(capsys, "trends", *words, "--from", database[0])
