"""``powerlab best`` and ``powerlab apply`` over stored sweeps of a simulated board."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.cli import EXIT_USAGE, main
from powerlab.cli.stored.local_database import begin
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.sweep import SweepPlan
from powerlab.store import open_store
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot
from tests.analysis.operating_point.idling_runs import idling

PLAN = SweepPlan(models=("detector",), threads=(2, 4), modes=("MAXN", "MODE_15W"), repeats=4)
TRUTH = {
    (2, "MAXN"): (60.0, 12.0, 6.0),
    (4, "MAXN"): (100.0, 16.0, 6.0),
    (2, "MODE_15W"): (30.0, 8.0, 4.0),
    (4, "MODE_15W"): (50.0, 9.5, 4.0),
}


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """Return the tree of a simulated Xavier."""
    tree = tmp_path_factory.mktemp("best") / "xavier"
    create_tree("jetson-agx-xavier", tree)
    return tree


@pytest.fixture(scope="module")
def xavier(board):
    return Host(sysroot=Sysroot(board), state_dir=board)


@pytest.fixture(scope="module")
def database(tmp_path_factory, xavier):
    """Return a database's path and the sweep in it."""
    path = tmp_path_factory.mktemp("best") / "runs.db"
    held = begin(open_store(path), xavier.device(), xavier.capabilities(), PLAN)
    for place, run in enumerate(measured(held.sweep_id)):
        held.add(replace(run, id=f"00000000-0000-4000-8000-{place:012}"), ())
    assert held.broken is None
    held.finish(None)
    return str(path), held.sweep_id


def measured(sweep_id):
    return idling({point: TRUTH[point.threads, point.mode] for point in PLAN.points()}, repeats=4, sweep_id=sweep_id)


def said(capsys, *words):
    assert main(words) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(words) == EXIT_USAGE
    return "".join(line for line in capsys.readouterr().err.splitlines() if not line.startswith("source: "))


def test_the_answer_names_the_point_its_bounds_their_costs_and_other_rates(database, capsys):
    path, sweep_id = database
    text = said(
        capsys, "best", sweep_id[:8], "--rate", "25/s", "--p99", "30ms", "--battery", "50Wh", "--database", path
    )
    assert "detector: least energy per image, 25 img/s arriving" in text
    assert "Best: detector, batch 1, 4 threads, mode MODE_15W" in text
    assert "(measured)" in text
    assert "99th percentile latency of at most 30 ms" in text
    assert "hours on 50 Wh" in text
    assert "cannot keep up with more" in text or "Racing to idle" in text
    assert f"powerlab apply {sweep_id[:8]} --p99 30ms --rate 25/s" in text


def test_a_model_stands_for_all_its_runs_and_json_is_the_apis_answer(database, capsys, xavier):
    path, sweep_id = database
    name = xavier.device().name
    words = (
        "best",
        "detector",
        "--device",
        name,
        "--for",
        "throughput",
        "--power",
        "13W",
        "--json",
        "--database",
        path,
    )
    (item,) = json.loads(said(capsys, *words))["items"]
    assert (item["device_name"], item["sweep_ids"], item["run_count"]) == (name, [sweep_id], 16)
    (answer,) = item["answers"]
    assert (answer["best"]["point"]["threads"], answer["best"]["point"]["mode"]) == (2, "MAXN")
    (cost,) = answer["costs"]
    assert cost["without"]["point"]["threads"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--p99", "1ms"), "99th percentile latency of at most 1 ms is missed by"),
        (("--power", "much"), "invalid power 'much'"),
        (("--rate", "1000"), "no point keeps up with 1000 img/s"),
        (("--for", "battery"), "battery life depends on how many images arrive"),
        (("--device", "board-1"), "there is no device 'board-1'"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_sentence(database, capsys, words, said):
    path, sweep_id = database
    sentence = refused(capsys, "best", sweep_id, *words, "--database", path)
    assert sentence.startswith("powerlab: ")
    assert said in sentence


def test_a_device_belongs_to_a_model_and_not_to_a_sweep(database, capsys, xavier):
    path, sweep_id = database
    words = ("best", sweep_id, "--device", xavier.device().name, "--database", path)
    assert "--device chooses among the runs of a model" in refused(capsys, *words)


def test_a_sweep_that_does_not_exist_is_refused(database, capsys):
    assert "'0ff0ff'" in refused(capsys, "best", "0ff0ff", "--database", database[0])


def test_a_model_that_nobody_measured_is_refused_with_those_that_were(database, capsys):
    sentence = refused(capsys, "best", "detectr", "--database", database[0])
    assert "there is no sweep or model 'detectr'" in sentence
    assert sentence.endswith("(did you mean detector?); models measured there: detector.")


def test_bounds_that_cost_nothing_share_a_sentence(database, capsys):
    path, sweep_id = database
    text = said(capsys, "best", sweep_id, "--power", "90W", "--p99", "9s", "--database", path)
    assert text.count("None of the bounds costs anything") == 1
    text = said(capsys, "best", sweep_id, "--power", "13W", "--p99", "9s", "--throughput", "1", "--database", path)
    assert re.search(r"Asking for power while running of at most 13 W makes the figure .* worse: without it", text)
    assert text.count("The other bounds cost nothing") == 1


def test_apply_sets_the_mode_to_stay_and_modes_restore_goes_back(database, capsys, board):
    path, sweep_id = database
    state = board / "var/lib/nvpmodel/status"
    before = state.read_text()
    where = ("--sysroot", str(board))
    text = said(capsys, "apply", sweep_id, "--rate", "25", "--p99", "30ms", "--database", path, *where)
    assert "mode MODE_15W" in text
    assert "threads=4, batch_size=1" in text
    assert f"powerlab modes restore {' '.join(where)}" in text
    assert state.read_text() != before
    assert json.loads(said(capsys, "modes", "--json", *where))["persistent"]["mode"] == "MODE_15W"
    said(capsys, "modes", "restore", *where)
    assert state.read_text() == before


def test_apply_takes_a_points_id_and_the_file_of_a_sweep(database, capsys, board, xavier, tmp_path):
    path, _ = database
    point = next(point for point in PLAN.points() if (point.threads, point.mode) == (2, "MODE_15W"))
    where = ("--sysroot", str(board), "--json")
    assert json.loads(said(capsys, "apply", point.id, "--database", path, *where))["point_id"] == point.id
    results = ResultsFile(tmp_path, "in-a-file", xavier.device(), PLAN)
    for run in measured("in-a-file"):
        results.add(run)
    results.close()
    shown = json.loads(said(capsys, "apply", str(results.path), "--point", point.id[:6], *where))
    assert shown["point"]["threads"] == 2
    assert [(one["knob"], one["target"]) for one in shown["settings"]] == [("nvpmodel", "mode")]
    said(capsys, "modes", "restore", "--sysroot", str(board))


def test_apply_refuses_another_device_unless_told(database, capsys, tmp_path):
    path, sweep_id = database
    create_tree("jetson-orin-nano", tmp_path / "orin")
    where = ("--database", path, "--sysroot", str(tmp_path / "orin"))
    sentence = refused(capsys, "apply", sweep_id, *where)
    assert "measured on simulated-jetson-agx-xavier, and this is simulated-jetson-orin-nano" in sentence
    assert "MODE_15W" in refused(capsys, "apply", sweep_id, "--rate", "25", "--other-device", *where)
    assert "no points of that sweep begin with 'zz'" in refused(
        capsys, "apply", sweep_id, "--point", "zz", "--other-device", *where
    )
