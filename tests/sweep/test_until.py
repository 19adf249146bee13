"""``--until``: what cannot be reached is refused before the sweep, and what can be is gone on with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_runs import meter_of, rail, runs_of
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import visits_again
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.recording.rails import Meter
from powerlab.sweep.until import check_until, still_wide, widest_percent

PLAN = SweepPlan(models=("m",), threads=(1, 2), until_percent=1.0)
ONE, TWO = PLAN.points()


def refusal(plan: SweepPlan, meter: Meter) -> str:
    with pytest.raises(PowerlabError) as caught:
        check_until(plan, meter)
    return str(caught.value)


def test_a_gain_error_wider_than_what_is_asked_for_is_refused_with_its_rail():
    assert refusal(PLAN, meter_of(rail("rapl", "package-0", 0.05))) == (
        "--until 1% cannot be reached: rapl:package-0 is only known to ±5 %; ask for at least --until 5.5%."
    )


def test_without_power_there_is_nothing_to_go_on_until():
    assert refusal(PLAN, meter_of()) == (
        "--until 1% is about img/s/W, and no power source can be read here; leave it out, or see `powerlab doctor`."
    )


def test_an_error_as_large_as_the_power_has_no_width_to_ask_for():
    sentence = refusal(PLAN, meter_of(rail("estimate", "host", 1.2)))
    assert "no upper end; leave it out" in sentence


def test_nothing_is_refused_that_was_not_asked_for():
    check_until(replace(PLAN, until_percent=0.0), meter_of())
    check_until(replace(PLAN, until_percent=5.5), meter_of(rail("rapl", "package-0", 0.05)))
    check_until(PLAN, meter_of(rail("meter", "wall", 0.0)))


def test_rails_of_one_source_share_their_error_and_sources_do_not():
    """Two meters of 1.5 % are known together to 1.5 / √2 at best; two rails of one chip no better than one."""
    plan = replace(PLAN, until_percent=1.2)
    check_until(plan, meter_of(rail("meter", "a", 0.015), rail("ipmi", "b", 0.015)))
    assert "cannot be reached" in refusal(plan, meter_of(rail("ina3221", "a", 0.015), rail("ina3221", "b", 0.015)))


@given(errors=st.lists(st.floats(0.001, 0.6), min_size=1, max_size=4), percent=st.floats(0.01, 50))
def test_who_asks_for_what_the_refusal_names_is_not_refused_again(errors, percent):
    meter = meter_of(*(rail(f"source{index}", "r", error) for index, error in enumerate(errors)))
    plan = replace(PLAN, until_percent=percent)
    try:
        check_until(plan, meter)
    except PowerlabError as error:
        named = float(str(error).rpartition("--until ")[2].rstrip("%."))
        assert named > percent
        check_until(replace(plan, until_percent=named), meter)


@given(error=st.floats(0.001, 0.5), spread=st.floats(0, 0.3))
def test_what_is_refused_beforehand_could_not_have_been_reached(error, spread):
    """The floor is below whatever a run with that gain error says of itself."""
    share = 0.95 * error
    reached = 100 * share / (1 - share)
    meter = meter_of(rail("rapl", "package-0", error))
    check_until(replace(PLAN, until_percent=reached * 1.001), meter)
    assert "cannot be reached" in refusal(replace(PLAN, until_percent=reached * 0.99), meter)


def test_points_that_are_known_well_enough_are_left_alone():
    runs = {ONE.id: runs_of(ONE, 10.0, 10.001, 9.999), TWO.id: runs_of(TWO, 9.0, 10.0, 11.0)}
    assert still_wide(PLAN, runs, frozenset()) == (TWO,)
    assert widest_percent((ONE, TWO), runs) > 20


def test_points_that_no_repeat_can_mend_are_left_alone():
    hopeless = {ONE.id: runs_of(ONE, 9.0, 10.0, 11.0, spread=0.05), TWO.id: []}
    assert still_wide(PLAN, hopeless, frozenset()) == ()
    assert widest_percent((TWO,), hopeless) is None


def test_without_the_wish_no_point_goes_on():
    assert still_wide(replace(PLAN, until_percent=0.0), {ONE.id: runs_of(ONE, 1.0, 2.0, 3.0)}, frozenset()) == ()


def test_after_a_restart_points_go_on_until_this_life_knows_them():
    done = frozenset((ONE.id, repeat) for repeat in range(3))
    assert still_wide(PLAN, {}, done) == (ONE,)
    assert still_wide(PLAN, {ONE.id: runs_of(ONE, 10.0, 10.0)}, done) == (ONE,)
    assert still_wide(PLAN, {ONE.id: runs_of(ONE, 10.0, 10.0, 10.0)}, done) == ()


@given(seed=st.integers(), repeat=st.integers(3, 29), chosen=st.sets(st.integers(0, 7)))
def test_a_further_block_holds_the_chosen_points_once_and_can_be_repeated(seed, repeat, chosen):
    plan = SweepPlan(models=("m",), threads=(1, 2, 3, 4), modes=("A", "B"), seed=seed)
    points = [point for index, point in enumerate(plan.points()) if index in chosen]
    order = visits_again(plan, points, repeat)
    made = [point for visit in order for point in visit.points]
    assert sorted(point.id for point in made) == sorted(point.id for point in points)
    assert all(visit.repeat == repeat for visit in order)
    assert all(point.mode == visit.mode for visit in order for point in visit.points)
    assert order == visits_again(plan, points, repeat)
    left = visits_again(plan, points, repeat, frozenset({(point.id, repeat) for point in points[:1]}))
    assert sum(len(visit.points) for visit in left) == max(0, len(points) - 1)


def test_further_blocks_differ_from_each_other():
    plan = SweepPlan(models=("m",), threads=tuple(range(1, 9)))
    orders = {
        tuple(point.id for visit in visits_again(plan, plan.points(), repeat) for point in visit.points)
        for repeat in range(3, 10)
    }
    assert len(orders) == 7
