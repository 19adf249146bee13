"""What a counter's readings say of its curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity
from powerlab.measure.energy.counter_knots import knots_of
from powerlab.measure.energy.rail import rail_energy

WINDOW_S = 6.0


def counter(make_rail, make_trace, power_w, period_s=0.01, update_s=0.1, step_j=0.0):  # noqa: PLR0917
    """A counter of steady power, renewed in its own time; the window begins at 2 s."""
    times = np.arange(0, 10, period_s)
    renewed = times if not update_s else np.floor(times / update_s + 0.37) * update_s - 0.37 * update_s
    joules = 1000 + power_w * renewed
    if step_j:
        joules = np.floor(joules / step_j) * step_j
    rail = make_rail(quantity=RailQuantity.ENERGY, update_period_s=update_s, resolution=step_j)
    return make_trace(times, joules, rail)


def test_readings_that_repeat_the_last_one_are_no_knots(make_rail, make_trace):
    trace = counter(make_rail, make_trace, 10.0)
    knots = knots_of(trace.time_ns / 1e9 - 2, trace, WINDOW_S)
    assert knots.time_s.size == pytest.approx(100, abs=2)
    assert np.all(knots.unsure_s[1:] <= 0.005 + 1e-9), "seen to within a read"
    assert knots.wander_w2s == pytest.approx(0, abs=1e-6)


def test_one_that_is_read_less_often_than_it_is_renewed_is_up_to_a_period_old(make_rail, make_trace):
    trace = counter(make_rail, make_trace, 10.0, period_s=0.1, update_s=0.02)
    knots = knots_of(trace.time_ns / 1e9 - 2, trace, WINDOW_S)
    assert knots.unsure_s.max() == pytest.approx(0.01)


@given(power=st.floats(1, 300), update=st.sampled_from([0.0, 0.001, 0.02, 0.1]), period=st.sampled_from([0.01, 0.05]))
def test_steady_power_is_found_to_within_what_a_read_leaves_open(make_rail, make_trace, power, update, period):
    trace = counter(make_rail, make_trace, power, period, update)
    energy = rail_energy(trace, 2_000_000_000, 8_000_000_000)
    assert energy.energy_j == pytest.approx(power * WINDOW_S, abs=2 * power * min(period, update) + 1e-6)
    assert energy.other_j["edge"] <= power * min(period, update) * math.sqrt(2 / 3) + 1e-6


def test_a_coarse_step_matters_only_as_far_as_it_hides_when_it_was_reached(make_rail, make_trace):
    """A step of 5 J at 20 W is reached every quarter of a second, and seen to within a read."""
    trace = counter(make_rail, make_trace, 20.0, update_s=0.0, step_j=5.0)
    energy = rail_energy(trace, 2_000_000_000, 8_000_000_000)
    assert energy.energy_j == pytest.approx(120, abs=20 * 0.02)
    assert energy.other_j["rounding"] <= 5.0 / math.sqrt(6)


def test_power_that_varies_bends_the_curve_between_knots(make_rail, make_trace):
    rng = np.random.default_rng(1)
    times = np.arange(0, 10, 0.1)
    rail = make_rail(quantity=RailQuantity.ENERGY)
    calm, wild = (
        make_trace(times, np.cumsum(power * 0.1), rail)
        for power in (np.full(times.size, 20.0), rng.choice([10.0, 30.0], times.size))
    )
    window_ns = (2_050_000_000, 8_050_000_000)
    assert rail_energy(calm, *window_ns).other_j["edge"] == pytest.approx(0, abs=1e-6)
    # In the middle of 0.1 s between two knots, 10 W of deviation: half a bridge's, half that of two late knots.
    # A step of 20 W from before to after adds at most 20 W · 0.1 s / 4 as a bound.
    varied_j = math.sqrt(2) * 10 * 0.1 * math.sqrt((1 / 4 + 1 / 6) / 2)
    found_j = rail_energy(wild, *window_ns).other_j["edge"]
    assert 0.8 * varied_j <= found_j <= math.hypot(1.2 * varied_j, math.sqrt(2) * 20 * 0.1 / 4 / math.sqrt(3))


def test_a_step_of_the_load_at_the_windows_start_is_in_the_interval_and_in_no_other(make_rail, make_trace):
    """Long steady power before and after: the mean of all pieces hardly shows the one that the step is in."""
    times = np.arange(0, 10, 0.1)
    trace = make_trace(times, 10 * times + 20 * np.maximum(0, times - 2.05), make_rail(quantity=RailQuantity.ENERGY))
    at_step, later = (rail_energy(trace, start_ns, 8_000_000_000) for start_ns in (2_050_000_000, 5_000_000_000))
    assert abs(at_step.energy_j - 30 * 5.95) <= 20 * 0.1 / 4 + 1e-6
    assert at_step.other_j["edge"] == pytest.approx(20 * 0.1 / 4 / math.sqrt(3), rel=0.05)
    assert later.other_j["edge"] == pytest.approx(0, abs=1e-6)


def test_a_counter_that_stood_still_at_the_end_is_not_thought_to_run_on(make_rail, make_trace):
    times = np.arange(0, 10, 0.01)
    trace = make_trace(times, 10 * np.minimum(times, 5.0), make_rail(quantity=RailQuantity.ENERGY))
    assert rail_energy(trace, 2_000_000_000, 8_000_000_000).energy_j == pytest.approx(30, abs=0.2)


@given(steps=st.lists(st.floats(0, 50), min_size=60, max_size=60), at=st.floats(0.5, 5.0))
def test_the_curve_stays_within_the_readings_before_and_after(make_rail, make_trace, steps, at):
    trace = make_trace(np.arange(60) * 0.1, np.cumsum(steps), make_rail(quantity=RailQuantity.ENERGY))
    found = float(knots_of(trace.time_ns / 1e9, trace, 6.0).at(np.array([at]))[0])
    before, after = math.floor(at / 0.1 + 1e-9), math.ceil(at / 0.1 - 1e-9)
    assert trace.value[before] - 1e-6 <= found <= trace.value[min(after, 59)] + 1e-6
