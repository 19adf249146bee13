"""What a sensor is late by, and what that does to a window's energy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity
from powerlab.measure.energy.lag_correction import Lag, lag_of, lagged_energy
from powerlab.measure.energy.rail import rail_energy

SQRT3 = math.sqrt(3)
WINDOW_NS = (2_000_000_000, 8_000_000_000)


def stepped(make_rail, make_trace, late_s, **fields):
    """A load that goes from 5 W to 25 W at 4 s, read so much later."""
    times = np.arange(0, 10, 0.01)
    return make_trace(times, np.where(times < 4 + late_s, 5.0, 25.0), make_rail(**fields))


def test_nobody_calibrated_it_so_that_it_is_a_rectangle_around_three_quarters_of_a_period(make_rail):
    lag = lag_of(make_rail(update_period_s=0.4), read_cost_ns=0)
    assert lag == Lag(mean_s=pytest.approx(0.3), deviation_s=pytest.approx(0.3 / SQRT3), calibrated=False)
    assert lag.effect == "edge"


def test_a_calibrated_lag_is_used_as_it_is(make_rail):
    lag = lag_of(make_rail(update_period_s=0.4, lag_s=0.25, lag_error_s=0.01), read_cost_ns=0)
    assert (lag.mean_s, lag.deviation_s, lag.effect) == (0.25, 0.01, "lag")


def test_where_within_its_read_a_value_is_taken_is_unknown(make_rail):
    lag = lag_of(make_rail(), read_cost_ns=20_000_000)
    assert (lag.mean_s, lag.deviation_s) == (0.0, pytest.approx(0.01 / SQRT3))


@given(mean=st.floats(-1, 1), deviation=st.floats(0, 1), slope=st.floats(-50, 50))
def test_what_depends_on_the_lag_in_a_straight_line_has_the_lags_own_deviation(mean, deviation, slope):
    lag = Lag(mean_s=mean, deviation_s=deviation, calibrated=True)
    energy_j, uncertainty_j = lagged_energy(lambda lag_s: 100 + slope * lag_s, lag)
    assert energy_j == pytest.approx(100 + slope * mean)
    assert uncertainty_j == pytest.approx(abs(slope) * deviation, rel=0.01, abs=1e-9)


@given(late=st.floats(0, 0.5))
def test_a_known_lag_is_taken_out(make_rail, make_trace, late):
    trace = stepped(make_rail, make_trace, late, lag_s=late, lag_error_s=1e-6)
    energy = rail_energy(trace, *WINDOW_NS)
    assert energy.energy_j == pytest.approx(2 * 5 + 4 * 25, abs=20 * 0.011)


@pytest.mark.parametrize("error_s", [0.001, 0.01, 0.1])
def test_its_error_counts_as_far_as_the_power_differs_at_both_ends(make_rail, make_trace, error_s):
    trace = stepped(make_rail, make_trace, 0.2, lag_s=0.2, lag_error_s=error_s, update_period_s=0.1)
    assert rail_energy(trace, *WINDOW_NS).other_j["lag"] == pytest.approx(20 * error_s, rel=0.02)


def test_of_a_load_that_is_the_same_at_both_ends_no_lag_matters(make_rail, make_trace):
    times = np.arange(0, 10, 0.01)
    for fields in ({"update_period_s": 0.2}, {"update_period_s": 0.2, "lag_s": 0.3, "lag_error_s": 0.1}):
        energy = rail_energy(make_trace(times, np.full(times.size, 12.0), make_rail(**fields)), *WINDOW_NS)
        assert energy.energy_j == pytest.approx(72)
        assert energy.other_j.get("edge", 0.0) + energy.other_j.get("lag", 0.0) == pytest.approx(0, abs=1e-9)


def test_a_recording_that_ends_before_the_lag_is_extended_by_its_last_sample(make_rail, make_trace):
    rail = make_rail(lag_s=3.0, lag_error_s=0.01)
    times = np.arange(0, 8.001, 0.01)
    trace = make_trace(times, np.full(times.size, 12.0), rail)
    assert rail_energy(trace, *WINDOW_NS).energy_j == pytest.approx(72)


def test_a_counters_lag_holds_the_time_until_it_is_renewed(make_rail, make_trace):
    """A counter that is renewed every 0.2 s and says it is 0.1 s late is not late beyond that."""
    times = np.arange(0, 10, 0.01)
    counted = 10 * np.floor(times / 0.2 + 1e-9) * 0.2
    rail = make_rail(quantity=RailQuantity.ENERGY, update_period_s=0.2)
    unknown, known = (
        rail_energy(make_trace(times, counted, one), *WINDOW_NS)
        for one in (rail, replace(rail, lag_s=0.1, lag_error_s=0.002))
    )
    assert known.energy_j == pytest.approx(60, abs=0.06)
    assert unknown.energy_j == pytest.approx(60, abs=0.06)
