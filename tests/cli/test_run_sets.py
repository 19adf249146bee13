"""How the command line names sets of runs."""

from __future__ import annotations

import argparse

import pytest

from powerlab.analysis.run_selection import key_names
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.cli.stored.run_sets import find_sets
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from server_examples import device
from tests.analysis.paired_runs import sweep

MODES = ("15W", "cores=3+cpu-max=883200kHz")
PLAN = SweepPlan(models=("resnet50",), threads=(1, 2), modes=MODES, cores=("0-1,3", "2"))
NOWHERE = argparse.Namespace(read_from=None)


@pytest.fixture
def path(tmp_path):
    results = ResultsFile(tmp_path, "kept", device(), PLAN)
    for run in sweep(dict.fromkeys(PLAN.points(), (100.0, 10.0)), sweep_id="kept"):
        results.add(run)
    results.close()
    return str(results.path)


def only(word):
    (found,) = find_sets([word], NOWHERE)
    return found


@pytest.mark.parametrize(
    ("selection", "points"),
    [
        ("", 8),
        (":threads=2", 4),
        (":mode=15W,threads=1", 2),
        (":mode=cores=3+cpu-max=883200kHz", 4),
        (":cores=0-1,3,threads=2", 2),
        (":engine=builtin,precision=fp32,batch=1", 8),
        (":bound-ms=0", 8),
    ],
)
def test_a_selection_keeps_the_runs_that_fit_all_of_it(path, selection, points):
    found = only(path + selection).runs
    assert len({run.point for run in found.runs}) == points
    assert found.label == path + selection
    assert found.devices == {(device().name, device().simulated)}


def test_selected_dimensions_are_those_in_which_points_may_differ(path):
    assert only(f"{path}:threads=2,mode=15W").selected == ("threads", "mode")
    assert only(f"{path}:device={device().name}").selected == ()
    assert "spin-us" in key_names()


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        ("mode=15w", r"mode=15w \(did you mean 15W\?\); there are: 15W, cores=3"),
        ("modes=15W", r"no key 'modes' \(did you mean mode\?\)"),
        ("device=another", "device=another"),
        ("version=9.9", r"has version=9\.9"),
    ],
)
def test_what_fits_nothing_is_said_with_what_there_is(path, selection, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        only(f"{path}:{selection}")


def test_a_sweep_that_several_sets_are_of_is_read_and_named_once(path, capsys):
    one, other = find_sets([f"{path}:threads=1", f"{path}:threads=2"], NOWHERE)
    assert {run.point.threads for run in one.runs.runs} == {1}
    assert {run.point.threads for run in other.runs.runs} == {2}
    assert capsys.readouterr().err.count("source: ") == 1
