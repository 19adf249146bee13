"""A sweep over slices on a simulated board: a dimension like any other, shown where it is not one slice alone."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

import pytest

from powerlab.analysis.dimensions import in_words, shown
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload

pytestmark = pytest.mark.campaign(minutes=1)

WORDS = "mobilenetv2@96 --board jetson-agx-xavier --modes MAXN --batch 4 --threads 4 --repeats 3 --seed 1"
SHORT = "--duration 0.5 --warm-up 0.2 --idle 0.3"
POINTS = {"22093a41cff0fe68": 1, "f37d572e203d85d5": 2}
"""Stored sweeps have their points under these identifiers; that of one slice is as it was before there were slices."""


@pytest.fixture(scope="module")
def sweep(shared_powerlab):
    """The sweep's document, and the table that the same command prints."""
    words = ("profile", *WORDS.split(), *SHORT.split(), "--database", "sliced.db", "--slices", "1,2")
    done = shared_powerlab(*words, "--output", "sliced.json")
    assert done.returncode in {0, 1}, done.stderr  # 1 where so much else runs here that a run's figures are void
    return json.loads((shared_powerlab.home / "sliced.json").read_text()), done.stdout


def test_every_number_of_slices_is_a_point_with_its_repeats(sweep):
    document, _ = sweep
    assert document["plan"]["slices"] == [1, 2]
    assert {one["point_id"]: one["point"]["workload"]["slices"] for one in document["summaries"]} == POINTS
    runs = Counter(run["point"]["workload"]["slices"] for run in document["runs"])
    assert runs == {1: 3, 2: 3}
    assert "failed" not in {run["verdict"] for run in document["runs"]}
    for run in document["runs"]:
        found = {metric["name"]: metric["value"] for metric in run["metrics"]}
        assert found["throughput_img_per_s"] > 0
        assert found["power_w"] > 0


def test_the_table_says_how_many_slices(sweep):
    _, printed = sweep
    assert "slices" in printed


def test_an_export_of_what_was_stored_says_it_too(sweep, shared_powerlab):
    document, _ = sweep
    done = shared_powerlab("export", "--database", "sliced.db")
    assert done.returncode == 0, done.stderr
    exported = {row["run_id"]: row["slices"] for row in csv.DictReader(io.StringIO(done.stdout))}
    assert exported == {run["id"]: str(run["point"]["workload"]["slices"]) for run in document["runs"]}


def test_one_slice_alone_is_not_worth_a_column_nor_a_word():
    one, two = (Point(workload=Workload(model="m", batch_size=4, slices=n), threads=4, mode="MAXN") for n in (1, 2))
    assert "slices" not in {dimension.title for dimension in shown([one])}
    assert "slices" in {dimension.title for dimension in shown([one, two])}
    assert in_words(one) == "m, batch 4, 4 threads, mode MAXN"
    assert in_words(two) == "m, batch 4, 2 slices, 4 threads, mode MAXN"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--batch 4 --threads 3 --slices 2", "threads of 3 cannot be shared evenly by 2 slices"),
        ("--batch 3 --threads 2 --slices 2", "a batch of 3 cannot be shared evenly by 2 slices"),
        ("--batch 4 --threads 2 --slices 0", "invalid --slices value '0': give at least 1."),
    ],
)
def test_what_cannot_be_shared_evenly_is_refused_before_anything_runs(shared_powerlab, words, sentence):
    done = shared_powerlab("profile", "mobilenetv2@96", "--board", "jetson-agx-xavier", *words.split())
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
