"""What a recorded grid says of its best point: as much as its repeats can tell, and no more."""

from __future__ import annotations

import pytest

from bench.search.grids import Grid
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload


def recorded(*rates: tuple[float, float, float]) -> Grid:
    """A grid of points with three runs each, in img/s; the truth is the median, as it is of a file."""
    by_point = {
        Point(workload=Workload(model="m", batch_size=at), threads=1, mode="current"): runs
        for at, runs in enumerate(rates, start=1)
    }
    return Grid(
        name="made up",
        kind="recorded",
        truth={point: figures(sorted(runs)[1]) for point, runs in by_point.items()},
        repeats={point: tuple(map(figures, runs)) for point, runs in by_point.items()},
    )


def figures(rate: float) -> dict[str, float]:
    """What a run at a rate in img/s measures."""
    return {"latency_p50_ms": 1e3 / rate, "throughput_img_per_s": rate, "power_w": 1.0}


def test_of_points_far_apart_only_the_best_may_be_the_best() -> None:
    grid = recorded((100.0, 101.0, 99.0), (80.0, 81.0, 79.0), (60.0, 61.0, 59.0))
    assert grid.margin("throughput") == 0.0
    assert grid.may_be_best("throughput", 0.01) == 1


def test_points_as_near_as_their_runs_scatter_may_all_be_the_best() -> None:
    grid = recorded((100.0, 110.0, 90.0), (99.0, 108.0, 91.0), (60.0, 66.0, 54.0))
    assert 0.01 < grid.margin("throughput") < 0.3
    assert grid.may_be_best("throughput", 0.01) == 2


def test_one_disturbed_run_of_three_makes_the_recording_tell_less() -> None:
    quiet = recorded((100.0, 101.0, 99.0), (90.0, 91.0, 89.0))
    disturbed = recorded((100.0, 101.0, 60.0), (90.0, 91.0, 55.0))
    assert quiet.may_be_best("throughput", 0.01) == 1
    assert disturbed.may_be_best("throughput", 0.01) == 2


def test_a_simulated_board_s_truth_is_known() -> None:
    grid = recorded((100.0, 110.0, 90.0), (99.0, 108.0, 91.0))
    known = Grid(name="board", kind="simulated", truth=grid.truth)
    assert known.margin("throughput") == pytest.approx(0.0)
    assert known.may_be_best("throughput", 0.02) == 2
