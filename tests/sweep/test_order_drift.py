"""A machine that drifts while it is measured: in shuffled blocks that is scatter, in reading order it is a bias."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.order import visits
from powerlab.domain.statistics import student_95
from powerlab.domain.sweep import Point, SweepPlan

PLAN = SweepPlan(models=("m",), threads=(1, 2, 3, 4), modes=("A",), repeats=3)
DRIFT_PER_RUN = 0.01
"""The machine gets one per cent slower from run to run: every point is truly the same."""
SWEEPS = 300


def measured(order: Sequence[Point]) -> dict[int, list[float]]:
    """Return what each point's runs show, by threads, on a machine that drifts."""
    seen: defaultdict[int, list[float]] = defaultdict(list)
    for place, point in enumerate(order):
        seen[point.threads].append(1.0 + DRIFT_PER_RUN * place)
    return seen


def shuffled(seed: int) -> list[Point]:
    return [point for visit in visits(replace(PLAN, seed=seed)) for point in visit.points]


def one_after_the_other() -> list[Point]:
    """Return the order nobody should measure in: every repeat of a point before the next point."""
    return [point for point in PLAN.points() for _ in range(PLAN.repeats)]


def difference(order: Sequence[Point]) -> float:
    """Return how much slower the last point seems than the first; truly it is not."""
    seen = measured(order)
    return float(np.mean(seen[4]) - np.mean(seen[1]))


def claimed(order: Sequence[Point]) -> bool:
    """Whether the 95 % intervals of the means of the first and the last point do not overlap."""
    seen = measured(order)
    ends = []
    for threads in (1, 4):
        values = np.array(seen[threads])
        half = student_95(values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
        ends.append((values.mean() - half, values.mean() + half))
    return ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]


def test_in_shuffled_blocks_a_drift_is_no_difference_on_the_average():
    differences = [difference(shuffled(seed)) for seed in range(SWEEPS)]
    error = np.std(differences, ddof=1) / np.sqrt(SWEEPS)
    assert abs(float(np.mean(differences))) < 4 * error
    assert error < 0.1 * difference(one_after_the_other())


def test_one_point_after_the_other_would_have_been_biased():
    runs_between = 3 * PLAN.repeats
    assert difference(one_after_the_other()) == pytest.approx(DRIFT_PER_RUN * runs_between)
    assert claimed(one_after_the_other())


def test_in_shuffled_blocks_the_drift_widens_the_interval_instead():
    claims = [claimed(shuffled(seed)) for seed in range(SWEEPS)]
    assert np.mean(claims) < 0.05


@pytest.mark.parametrize("seed", range(20))
def test_no_shuffled_sweep_is_as_wrong_as_the_one_in_order(seed):
    """A block holds each point once, so two points are never further apart on the average than a block is long."""
    assert abs(difference(shuffled(seed))) <= DRIFT_PER_RUN * (len(PLAN.points()) - 1) + 1e-12
