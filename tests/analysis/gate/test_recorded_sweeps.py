"""Recorded sweeps: what is kept of a series gives a gate the same figures as its runs."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from bench.claims.recorded_sweeps import FOLDER, RecordedSweeps, packed, runs_of
from powerlab.analysis.gate.samples import sample
from powerlab.domain.run import Finding, Verdict
from tests.analysis.gate_sweeps import series

METRICS = ("latency_p50_ms", "throughput_img_per_s")


def test_a_packed_series_says_what_its_runs_say():
    sweeps = series(3)
    again = runs_of(packed("board", "a processor", sweeps, METRICS))
    for metric in METRICS:
        means = [sample(runs, metric).logarithm for runs in sweeps]
        assert [sample(runs, metric).logarithm for runs in again] == pytest.approx(means)


def test_flagged_runs_and_sweeps_with_too_few_others_are_left_out():
    sweeps = series(2)
    finding = Finding(rule="background-load", verdict=Verdict.FLAGGED, detail="others kept 1 core busy")
    sweeps[0][0] = replace(sweeps[0][0], verdict=Verdict.FLAGGED, findings=(finding,))
    assert len(packed("board", "a processor", sweeps, METRICS).sweeps) == 1


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_recorded_series_can_be_judged(path):
    recorded = msgspec.json.decode(path.read_bytes(), type=RecordedSweeps)
    assert all(sample(runs, "throughput_img_per_s") is not None for runs in runs_of(recorded))
