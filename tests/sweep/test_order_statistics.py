"""What the shuffled blocks are for: over many seeds no point has a place of its own, and time is foretold fairly."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.order import visits
from powerlab.domain.rigour import Rigour
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Scenario
from powerlab.measure.duration import expected_s, longest_s

PLAN = SweepPlan(models=("m",), threads=(1, 2, 4, 8), modes=("A", "B"), repeats=3)
DRAWS = 600


def order(seed: int) -> list[str]:
    plan = SweepPlan(models=PLAN.models, threads=PLAN.threads, modes=PLAN.modes, repeats=PLAN.repeats, seed=seed)
    return [point.id for visit in visits(plan) for point in visit.points]


def test_every_point_stands_in_every_place_about_equally_often():
    """A drift in time would otherwise fall on the same points in every sweep."""
    places = {point.id: Counter[int]() for point in PLAN.points()}
    count = len(places)
    for seed in range(DRAWS):
        for place, point_id in enumerate(order(seed)[:count]):
            places[point_id][place] += 1
    table = np.array([[places[point_id][place] for place in range(count)] for point_id in places])
    expected = DRAWS / count
    chi_square = float(((table - expected) ** 2 / expected).sum())
    degrees = (count - 1) ** 2
    assert chi_square < degrees + 5 * (2 * degrees) ** 0.5


def test_every_order_of_the_modes_occurs():
    firsts = Counter(tuple(dict.fromkeys(visit.mode for visit in visits(_seeded(seed))[:2])) for seed in range(200))
    assert set(firsts) == {("A", "B"), ("B", "A")}
    assert min(firsts.values()) > 60


def test_a_steady_drift_of_the_machine_averages_out_between_points():
    """A machine that slows down steadily: the points, over seeds, see about the same of it."""
    sums: Counter[str] = Counter()
    for seed in range(DRAWS):
        for place, point_id in enumerate(order(seed)):
            sums[point_id] += place
    means = [total / DRAWS / PLAN.repeats for total in sums.values()]
    assert max(means) - min(means) < 0.06 * len(PLAN.points()) * PLAN.repeats


def test_the_blocks_of_one_sweep_differ():
    size = len(PLAN.points())
    blocks = [tuple(order(3)[start : start + size]) for start in range(0, size * PLAN.repeats, size)]
    assert len(set(blocks)) == PLAN.repeats
    assert all(set(one) == set(other) for one, other in itertools.pairwise(blocks))


@given(seed=st.integers(0, 2**63 - 1), repeats=st.integers(3, 6))
def test_modes_are_switched_no_oftener_than_needed(seed, repeats):
    plan = SweepPlan(models=("m", "n"), threads=(1, 2), modes=("A", "B", "C"), repeats=repeats, seed=seed)
    assert len(visits(plan)) == repeats * len(plan.modes)


@given(done=st.integers(0, 24), margin_s=st.floats(0, 2))
def test_what_is_left_takes_the_less_time_the_more_is_done(done, margin_s):
    every = [(point.id, visit.repeat) for visit in visits(PLAN) for point in visit.points]
    whole = expected_s(PLAN, visits(PLAN), margin_s)
    left = expected_s(PLAN, visits(PLAN, frozenset(every[:done])), margin_s)
    assert 0 <= left <= whole
    assert (left == 0) == (done == len(every))
    assert done == 0 or left < whole


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"duration_s": 6.0}, 24 * 1.0),
        ({"warm_up_s": 3.0}, 24 * 2.0),
        ({"idle_s": 4.0}, (24 + 6) * 2.0),
        ({"seed": 5}, 0.0),
    ],
)
def test_each_part_of_a_run_counts_as_often_as_it_is_done(change, more):
    changed = replace(PLAN, **change)
    difference = expected_s(changed, visits(changed), 0.1) - expected_s(PLAN, visits(PLAN), 0.1)
    assert difference == pytest.approx(more)


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, 24 * 9.0),
        ({"longest_warm_up_s": 31.0}, 24 * 30.0),
        ({"longest_warm_up_s": 0.5}, 0.0),
        ({"warm_up_s": 0.0}, 0.0),
        # The first run of each of the six stays records a baseline anyway; the others do so after a cool-down.
        ({"longest_warm_up_s": 1.0, "cool_down_s": 60.0}, 24 * 60.0 + 18 * 2.2),
    ],
)
def test_the_longest_time_counts_every_wait_to_its_end(change, more):
    plan = replace(PLAN, **change)
    order = visits(plan)
    assert longest_s(plan, order, 0.1) - expected_s(plan, order, 0.1) == pytest.approx(more)
    assert longest_s(plan, (), 0.1) == 0


def test_a_slow_model_needs_longer_than_the_plans_duration():
    order = visits(PLAN)
    slow = {PLAN.points()[0].id: 2.0}
    assert expected_s(PLAN, order, 0.1, slow) - expected_s(PLAN, order, 0.1) == pytest.approx(3 * (10 * 2.0 - 5.0))
    assert expected_s(PLAN, order, 0.1, dict.fromkeys(slow, 0.01)) == expected_s(PLAN, order, 0.1)


def test_a_publishable_sweep_of_images_without_end_is_told_in_hours():
    """24,576 images offline at 10 images a second are 41 minutes a run, whatever the plan's ten minutes say."""
    plan = replace(
        PLAN, scenarios=(Scenario.OFFLINE,), rigour=Rigour.PUBLISHABLE, duration_s=600.0, min_inferences=1024
    )
    each = {point.id: 0.1 for point in plan.points()}
    assert expected_s(plan, visits(plan), 0.1, each) > 24 * 24_576 * 0.1


def test_the_search_for_a_servers_load_takes_time_of_its_own():
    """Queries alone, two probes, and a window whose queries leave half of the time free."""
    plan = replace(PLAN, scenarios=(Scenario.SERVER,), latency_bound_ms=300.0, duration_s=8.0, min_inferences=10)
    usual = replace(plan, scenarios=(Scenario.SINGLE_STREAM,))
    runs = sum(len(visit.points) for visit in visits(plan))

    def more_s(query_s: float) -> float:
        of_server = expected_s(plan, visits(plan), 0.1, {point.id: query_s for point in plan.points()})
        return of_server - expected_s(usual, visits(usual), 0.1)

    assert more_s(0.001) == pytest.approx(runs * 3 * 2.0)
    assert more_s(0.1) == pytest.approx(runs * (10.0 + 2 * 20.0))
    assert more_s(2.0) == pytest.approx(runs * (200.0 + 40.0 - 8.0))


def _seeded(seed: int) -> SweepPlan:
    return SweepPlan(models=("m",), threads=(1,), modes=("A", "B"), seed=seed)
