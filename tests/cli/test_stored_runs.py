"""``runs`` and ``export`` over a local database: every run, every filter, names that are hard to print."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from powerlab.cli import main
from powerlab.cli.stored.local_database import begin
from powerlab.domain.run import Run
from powerlab.protocol.wire import decode
from powerlab.store import open_store
from server_examples import PLAN, capabilities, device, make_run, runs_of

HARD = 'models/odd, "name" [bold]x[/bold];é.onnx'


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the path of a database with two sweeps and their runs, in order."""
    path = tmp_path_factory.mktemp("stored") / "runs.db"
    store = open_store(path)
    runs: list[Run] = []
    for plan in (PLAN, replace(PLAN, models=(HARD,), threads=(1,), batch_sizes=(1,), modes=("current",))):
        sweep = begin(store, device(), capabilities(), plan)
        for run in runs_of(sweep.sweep_id, plan)[:5]:
            sweep.add(run, ())
            runs.append(run)
        assert sweep.broken is None
        sweep.finish(None)
    store.close()
    return str(path), runs


def said(capsys, *words: str) -> str:
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("source: database ")
    assert captured.err.count("\n") == 1
    return captured.out


def test_the_list_holds_every_run_once_and_prints_names_as_they_are(stored, capsys):
    path, runs = stored
    listed = said(capsys, "runs", "list", "--database", path)
    assert all(listed.count(run.id) == 1 for run in runs)
    assert "[bold]x[/bold];é.onnx" in listed
    assert decode(said(capsys, "runs", "list", "--json", "--database", path), list[Run]) == runs


def test_filters_choose_and_add_up(stored, capsys):
    path, runs = stored

    def chosen(*words: str) -> list[Run]:
        return decode(said(capsys, "runs", "list", "--json", "--database", path, *words), list[Run])

    first = runs[0].sweep_id
    assert chosen("--sweep", first) == [run for run in runs if run.sweep_id == first]
    assert chosen("--model", HARD) == [run for run in runs if run.point.workload.model == HARD]
    assert chosen("--verdict", "flagged") == runs
    assert chosen("--verdict", "void") == []
    assert chosen("--model", HARD, "--sweep", first) == []


def test_the_csv_holds_every_figure_with_unit_interval_and_provenance(stored, capsys):
    path, runs = stored
    rows = list(csv.DictReader(io.StringIO(said(capsys, "export", "--database", path), newline="")))
    assert len(rows) == sum(len(run.metrics) for run in runs)
    assert {row["model"] for row in rows} == {"resnet50", HARD}
    figures = [(metric.value, metric.low, metric.high, metric.provenance) for run in runs for metric in run.metrics]
    for row, (value, low, high, provenance) in zip(rows, figures, strict=True):
        assert float(row["value"]) == value
        assert [row["low"], row["high"]] == ["" if end is None else repr(end) for end in (low, high)]
        assert row["provenance"] == provenance
        assert row["unit"]


def test_ndjson_is_a_run_a_line_and_loses_nothing(stored, capsys):
    path, runs = stored
    lines = said(capsys, "export", "--format", "ndjson", "--database", path).splitlines()
    assert [decode(line, Run) for line in lines] == runs


def test_one_run_is_shown_with_every_figure_and_what_the_rules_said(stored, capsys):
    path, runs = stored
    shown = said(capsys, "runs", "show", runs[-1].id, "--database", path)
    assert HARD in shown
    assert "flagged (throttled): 1.2 GHz of 2.2 GHz" in shown
    assert shown.count("measured") == len(runs[-1].metrics)
    assert "power: ina3221:VDD_GPU, module rails, without the carrier board" in shown
    assert json.loads(said(capsys, "runs", "show", runs[-1].id, "--json", "--database", path))["id"] == runs[-1].id


def test_an_export_that_is_refused_leaves_the_file_there_was(stored, capsys, tmp_path):
    path, _ = stored
    output = tmp_path / "runs.csv"
    output.write_text("of last week\n")
    assert main(["export", "--database", path, "--sweep", "none", "--output", str(output)]) == 2
    assert output.read_text() == "of last week\n"


def test_an_empty_database_gives_an_empty_answer_of_the_right_form(tmp_path, capsys):
    path = str(tmp_path / "empty.db")
    open_store(path).close()
    assert json.loads(said(capsys, "runs", "list", "--json", "--database", path)) == []
    assert said(capsys, "export", "--format", "ndjson", "--database", path) == ""
    assert len(said(capsys, "export", "--database", path).splitlines()) == 1


def test_a_run_without_power_has_no_power_row(tmp_path, capsys):
    store = open_store(tmp_path / "runs.db")
    sweep = begin(store, device(), capabilities(), PLAN)
    run = make_run(sweep.sweep_id, PLAN.points()[0], 0)
    kept = tuple(metric for metric in run.metrics if "power" not in metric.name and "per_w" not in metric.name)
    sweep.add(replace(run, metrics=kept, total=None), ())
    store.close()
    rows = list(csv.DictReader(io.StringIO(said(capsys, "export", "--database", str(tmp_path / "runs.db")))))
    assert {row["metric"] for row in rows} == {metric.name for metric in kept}
    assert "power: none" in said(capsys, "runs", "show", run.id, "--database", str(tmp_path / "runs.db"))
    listed = said(capsys, "runs", "list", "--database", str(tmp_path / "runs.db"))
    assert listed.splitlines()[1].split()[-1] == "–"
