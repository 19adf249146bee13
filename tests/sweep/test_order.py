"""Blocks, kept modes, and the seed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.order import visits
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.duration import expected_s

plans = st.builds(
    SweepPlan,
    models=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True).map(tuple),
    threads=st.lists(st.integers(1, 8), min_size=1, max_size=4, unique=True).map(tuple),
    batch_sizes=st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True).map(tuple),
    modes=st.lists(st.sampled_from(["current", "MAXN", "15W"]), min_size=1, max_size=3, unique=True).map(tuple),
    repeats=st.integers(3, 6),
    seed=st.integers(),
)


@given(plan=plans)
def test_every_block_holds_every_point_once_and_visits_every_mode_once(plan):
    order = visits(plan)
    for repeat in range(plan.repeats):
        block = [visit for visit in order if visit.repeat == repeat]
        points = [point for visit in block for point in visit.points]
        assert Counter(point.id for point in points) == Counter(point.id for point in plan.points())
        assert sorted(visit.mode for visit in block) == sorted(plan.modes)
        assert all(point.mode == visit.mode for visit in block for point in visit.points)
    assert [visit.repeat for visit in order] == sorted(visit.repeat for visit in order)


@given(plan=plans)
def test_the_same_seed_gives_the_same_order(plan):
    assert visits(plan) == visits(plan)


@given(plan=plans, data=st.data())
def test_what_is_done_is_left_out_and_the_rest_keeps_its_order(plan, data):
    every = [(point.id, visit.repeat) for visit in visits(plan) for point in visit.points]
    done = frozenset(data.draw(st.lists(st.sampled_from(every))))
    left = [(point.id, visit.repeat) for visit in visits(plan, done) for point in visit.points]
    assert left == [run for run in every if run not in done]
    assert all(visit.points for visit in visits(plan, done))


def test_seeds_and_blocks_differ(make_plan):
    def order(seed: int) -> list[tuple[str, ...]]:
        plan = make_plan(threads=tuple(range(1, 9)), seed=seed)
        return [tuple(point.id for point in visit.points) for visit in visits(plan)]

    assert order(1) != order(2)
    assert len(set(order(1))) > 1


def test_the_expected_time_counts_runs_and_idle_baselines(make_plan):
    plan = make_plan(modes=("MAXN", "15W"), duration_s=10.0, idle_s=5.0)
    seconds = expected_s(plan, visits(plan), margin_s=0.1)
    assert seconds > 12 * 10 + 6 * 5
    assert expected_s(plan, (), margin_s=0.1) == 0
