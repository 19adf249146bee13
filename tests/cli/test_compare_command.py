"""``powerlab compare`` over sweeps in a database and in files."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from powerlab.cli import EXIT_USAGE, main
from powerlab.cli.output.sweep_report import document
from powerlab.cli.stored.local_database import begin
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.store import open_store
from server_examples import capabilities, device
from tests.analysis.paired_runs import sweep

PLAN = SweepPlan(models=("resnet50",), threads=(1, 2))
SPEEDS = {1: (50.0, 10.0), 2: (100.0, 10.0)}


def runs_of(sweep_id, plan=PLAN, seed=0, factor=1.0):
    truth = {point: (SPEEDS[point.threads][0] * factor, SPEEDS[point.threads][1]) for point in plan.points()}
    return sweep(truth, seed=seed, sweep_id=sweep_id)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Return a database's path, and in it two sweeps of one device, the second 20 % faster."""
    path = tmp_path_factory.mktemp("compared") / "runs.db"
    store = open_store(path)
    names = []
    for number, factor in enumerate((1.0, 1.2)):
        held = begin(store, device(), capabilities(), PLAN)
        for place, run in enumerate(runs_of(held.sweep_id, seed=number, factor=factor)):
            held.add(replace(run, id=f"00000000-0000-4000-8000-00000000{number}{place:03}"), ())
        assert held.broken is None
        held.finish(None)
        names.append(held.sweep_id)
    store.close()
    return str(path), names


@pytest.fixture
def file(tmp_path):
    results = ResultsFile(tmp_path, "sweep-in-a-file", device(), PLAN)
    for run in runs_of("sweep-in-a-file"):
        results.add(run)
    results.close()
    return results.path


def said(capsys, *words):
    assert main(words) == 0
    captured = capsys.readouterr()
    assert all(line.startswith("source: ") for line in captured.err.splitlines())
    return captured.out


def refused(capsys, *words):
    assert main(words) == EXIT_USAGE
    lines = capsys.readouterr().err.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("source: "))


def test_one_sweep_says_what_beats_what(database, capsys):
    path, (first, _) = database
    text = said(capsys, "compare", first, "--database", path)
    assert [line for line in text.splitlines() if "is better)" in line] == [
        "Median latency (ms, lower is better)",
        "Throughput (img/s, higher is better)",
        "Efficiency (images per joule) (img/s/W, higher is better)",
    ]
    assert text.count("2 threads") == text.count("1 thread ") == 3
    assert text.count(" better\n") == 3
    assert "measured" in text


def test_two_sweeps_say_what_the_second_gained(database, capsys):
    path, (first, second) = database
    text = said(capsys, "compare", first, second, "--metric", "throughput_img_per_s", "--database", path)
    assert text.startswith(f"Baseline: {first}\n")
    assert text.count("better\n") == 3, "two points and the whole"
    assert f"Best throughput over the 2 points in common: {second}; winner: beats {first} by " in " ".join(text.split())
    shown = json.loads(said(capsys, "compare", first, second, "--json", "--database", path))
    assert shown["sweeps"] == [first, second]
    assert shown["baseline"] == first
    assert {match["one"]["sweep_id"] for match in shown["matches"]} == {second}
    for match in shown["matches"]:
        assert match["claimed"] is True
        assert match["ratio"]["low"] < match["ratio"]["value"] < match["ratio"]["high"]
        assert match["one"]["figure"]["provenance"] == "measured"
    assert [(one["decision"], one["sets"][0]) for one in shown["best"]] == [("winner", second)] * 3


def test_parts_of_a_sweep_are_sets_too(database, capsys):
    path, (first, second) = database
    words = (f"{first}:threads=1", f"{first}:threads=2", f"{second}:threads=2")
    shown = json.loads(said(capsys, "compare", *words, "--metric", "img/s", "--json", "--database", path))
    assert [one["set"] for one in shown["matches"]] == list(words[1:])
    assert [one["ratio"]["paired"] for one in shown["matches"]] == [True, False]
    assert shown["best"][0]["sets"] == [words[2], words[1], words[0]]
    assert shown["best"][0]["decision"] == "winner"


def test_all_stored_runs_that_fit_are_a_set(database, capsys):
    path, (first, second) = database
    words = ("threads=1,model=resnet50", f"device={device().name},threads=2")
    shown = json.loads(said(capsys, "compare", *words, "--metric", "img/s", "--json", "--database", path))
    assert sorted(shown["sweeps"]) == sorted([first, second])
    assert [one["run_count"] for one in shown["sets"]] == [6, 6]
    assert shown["matches"][0]["ratio"]["paired"] is True, "both sets have both sweeps"


def test_flagged_runs_make_no_winner_and_the_sentence_says_what_to_do(tmp_path, capsys):
    paths = []
    for name, factor in (("a", 1.0), ("b", 2.0)):
        results = ResultsFile(tmp_path, name, device(), PLAN)
        for run in runs_of(name, factor=factor):
            results.add(replace(run, verdict=Verdict.FLAGGED) if run.repeat == 1 else run)
        results.close()
        paths.append(str(results.path))
    text = " ".join(said(capsys, "compare", *paths, "--metric", "img/s").split())
    assert "not enough data: a claim takes 3 valid runs; add 1 repeat" in text
    assert "(`powerlab repeat a --add 1` and `powerlab repeat b --add 1`)" in text
    assert "winner" not in text


def test_the_first_digits_of_an_identifier_will_do(database, capsys):
    path, (first, _) = database
    words = ("--metric", "throughput_img_per_s", "--database", path)
    assert said(capsys, "compare", first[:13], *words) == said(capsys, "compare", first, *words)


def test_a_dimension_within_a_sweep(database, capsys):
    path, (first, _) = database
    text = said(capsys, "compare", first, "--by", "threads", "--metric", "watts", "--database", path)
    assert "tied" in text


def test_a_results_file_and_a_document_are_sweeps_too(file, tmp_path, capsys):
    table = said(capsys, "compare", str(file))
    whole = tmp_path / "sweep.json"
    found = document("sweep-in-a-file", device(), PLAN, runs_of("sweep-in-a-file"))
    whole.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2))
    assert said(capsys, "compare", str(whole)) == table


def test_a_results_file_is_found_by_its_sweep_where_there_is_no_database(file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    kept = tmp_path / "state" / "sweeps"
    kept.mkdir(parents=True)
    file.rename(kept / file.name)
    assert "better" in said(capsys, "compare", "sweep-in")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["{first}:thread=1", "{second}"], "there is no key 'thread' (did you mean threads?); choose from: device, "),
        (["{first}:threads=3", "{second}"], "has threads=3; there are: 1, 2."),
        (["device=nobody", "{second}"], "device=nobody"),
        ([":threads=1", "{second}"], ":threads=1 names no sweep before the colon; leave out the colon"),
        (["nosuch"], "there is no sweep 'nosuch' in database"),
        ([""], "there is no sweep ''"),
        (["{first}", "--metric", "colour"], "unknown metric 'colour'; choose from: p50, p90"),
        (["{first}", "--metric", "efficency"], "(did you mean efficiency?)"),
        (["{first}", "--by", "threds"], "(did you mean threads?)"),
        (["{first}", "--by", "engine"], "no two points of the sweep differ in 'engine' alone"),
        (["{first}", "{second}", "--by", "threads"], "--by compares within one sweep"),
        (["{first}", "--ignore", "mode"], "--ignore compares sets of runs"),
        (["{first}", "{second}", "--ignore", "threads"], "are alike; select fewer of them"),
        (["{first}", "{second}", "--metric", "peak_memory_mb"], "no usable figures to compare with"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(database, capsys, words, sentence):
    path, (first, second) = database
    error = refused(capsys, "compare", *(word.format(first=first, second=second) for word in words), "--database", path)
    assert error.startswith("powerlab: ")
    assert sentence in error
    assert error.count("\n") == 1


def test_sweeps_without_a_common_point_are_told_how_to_meet(file, tmp_path, capsys):
    def written(name, plan):
        results = ResultsFile(tmp_path, name, device(), plan)
        for run in runs_of(name, plan):
            results.add(replace(run, id=f"{name}-{run.id}"))
        results.close()
        return results

    other = written("other", replace(PLAN, modes=("15W",)))
    sentence = refused(capsys, "compare", str(file), str(other.path))
    assert "they differ in mode; --ignore mode compares them all the same." in sentence
    assert "against" in said(capsys, "compare", str(file), str(other.path), "--ignore", "mode")
    three = said(capsys, "compare", str(file), str(other.path), str(written("third", PLAN).path))
    assert " ".join(sentence.removeprefix("powerlab: ").split()) in " ".join(three.split())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"kind": "sweep"}\n', b"{\n}"])
def test_a_file_that_is_no_sweep_is_refused(tmp_path, capsys, content):
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    error = refused(capsys, "compare", str(path))
    assert "holds no sweep" in error
    assert error.count("\n") == 1


def test_a_report_takes_the_sets_that_compare_takes(database, tmp_path, capsys):
    path, (first, second) = database
    page = tmp_path / "sets.md"
    words = (f"{first}:threads=1", f"{first}:threads=2", f"{second}:threads=2")
    said(capsys, "report", *words, "--metric", "img/s", "--output", str(page), "--database", path)
    text = page.read_text()
    assert said(capsys, "compare", *words, "--metric", "img/s", "--database", path).count("better") >= 2
    assert text.count("% better |") == 2
    assert "Median latency, ms" not in text


def test_a_report_of_a_part_or_of_too_many_is_refused(database, capsys):
    path, (first, second) = database
    assert "name a second set to compare" in refused(capsys, "report", f"{first}:threads=1", "--database", path)
    assert "has runs of 2 sweeps" in refused(capsys, "report", "threads=1", "--database", path)
    assert "up to 8 sets of runs; 9 were given" in refused(capsys, "report", *[first] * 9, "--database", path)
    assert "--metric is for comparing" in refused(capsys, "report", first, "--metric", "p99", "--database", path)
    assert "have no run in common" in refused(capsys, "report", second, f"{second}:mode=current", "--database", path)
