"""The lag that a step load shows, against sensors whose lag is known."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity
from powerlab.measure.energy.rail import rail_energy
from powerlab.measure.lag.edges import rail_lag
from powerlab.measure.lag.step_load import PERIODS_A_LEVEL, SHORTEST_LEVEL_S
from tests.measure.stepped_sensors import SENSORS, TICK_NS, Steps, rail_of, record, true_lag_s

TICK_S = TICK_NS / 1e9


def level_of(sensor) -> float:
    return max(SHORTEST_LEVEL_S, PERIODS_A_LEVEL * max(sensor["update_period_s"], sensor.get("averaging_s", 0.0)))


def calibrated(sensor, seed: int, cycles: int = 8):
    steps = Steps.draw(level_of(sensor), cycles, seed)
    trace = record(sensor, steps.power_w, steps.until_ns, seed)
    return rail_lag(trace, steps.edges_ns, steps.until_ns)


@pytest.mark.parametrize("name", SENSORS)
def test_the_lag_of_a_boards_sensor_is_found_within_what_is_said_of_it(name):
    sensor = SENSORS[name]
    found = calibrated(sensor, seed=3)
    assert found.problem == ""
    assert abs(found.lag_s - true_lag_s(sensor)) <= 3 * found.lag_error_s + TICK_S
    assert found.lag_error_s <= 0.2 * true_lag_s(sensor) + 2 * TICK_S, "nor is it padded"
    assert found.edges == 16
    assert found.step_w == pytest.approx(40, rel=0.05)
    assert found.update_period_s == pytest.approx(sensor["update_period_s"], rel=0.3)


@pytest.mark.campaign
def test_the_interval_holds_the_truth_as_often_as_it_says():
    sensor = SENSORS["ina3221, averaging"]
    inside = 0
    for seed in range(150):
        found = calibrated(sensor, seed, cycles=6)
        inside += abs(found.lag_s - true_lag_s(sensor)) <= 1.96 * found.lag_error_s
    assert inside >= 140


@settings(max_examples=60, deadline=None)
@given(
    update_ms=st.integers(1, 60),
    averaging_ms=st.integers(0, 80),
    filter_ms=st.integers(0, 40),
    seed=st.integers(0, 1000),
)
def test_any_filter_window_and_period_add_up_to_one_lag(update_ms, averaging_ms, filter_ms, seed):
    sensor = {"update_period_s": update_ms / 1e3, "averaging_s": averaging_ms / 1e3, "lag_s": filter_ms / 1e3}
    found = calibrated(sensor, seed, cycles=6)
    assert abs(found.lag_s - true_lag_s(sensor)) <= 4 * found.lag_error_s + 2 * TICK_S


def test_the_rise_time_is_that_of_the_window():
    """A window of 100 ms rises from 10 to 90 % in 80 ms; fine updates and reads add little to it."""
    found = calibrated({"update_period_s": 0.002, "averaging_s": 0.1}, seed=1)
    assert found.rise_s == pytest.approx(0.08, abs=0.02)


def test_a_wider_window_rises_more_slowly_though_its_lag_be_the_same():
    narrow = calibrated({"update_period_s": 0.002, "lag_s": 0.05}, seed=1)
    wide = calibrated({"update_period_s": 0.002, "averaging_s": 0.1}, seed=1)
    assert narrow.lag_s == pytest.approx(wide.lag_s, abs=0.005)
    assert narrow.rise_s > wide.rise_s, "an exponential takes 2.2 time constants"


@pytest.mark.parametrize("held_ms", [1, 40, 200])
def test_a_counters_lag_is_found_too(held_ms):
    steps = Steps.draw(max(0.5, 6 * held_ms / 1e3), 8, seed=5)
    ticks_ns = np.arange(0, steps.until_ns + TICK_NS, TICK_NS)
    joules = np.concatenate(([0.0], np.cumsum([steps.power_w(int(t) - TICK_NS // 2) for t in ticks_ns[1:]]))) * TICK_S
    shown = joules[np.arange(len(ticks_ns)) // held_ms * held_ms]
    trace = record({"update_period_s": held_ms / 1e3}, lambda _: 0.0, 10 * TICK_NS)
    rail = replace(trace.rail, quantity=RailQuantity.ENERGY)
    trace = replace(trace, rail=rail, time_ns=ticks_ns[::3].copy(), value=shown[::3].copy())
    found = rail_lag(trace, steps.edges_ns, steps.until_ns)
    assert abs(found.lag_s - held_ms / 2e3) <= 3 * found.lag_error_s + 2 * TICK_S
    assert found.rise_s is None


def test_clocks_that_rise_slowly_and_fall_at_once_widen_the_uncertainty():
    """The load's own slow rise is no lag of the sensor, and cannot be told from one: the two kinds of edges differ."""
    sensor = {"update_period_s": 0.002}
    steps = Steps.draw(0.5, 8, seed=2)

    def ramped_w(moment_ns: int) -> float:
        before = bisect_left(steps.edges_ns, moment_ns)
        if before % 2 == 0:
            return steps.low_w
        return steps.low_w + 40.0 * min(1.0, (moment_ns - steps.edges_ns[before - 1]) / 60e6)

    found = rail_lag(record(sensor, ramped_w, steps.until_ns), steps.edges_ns, steps.until_ns)
    assert abs(found.lag_s - 0.016) < 0.004, "half of the 30 ms that the rise looks late by, and half a period"
    assert found.lag_error_s >= 0.030 / 2 / math.sqrt(3) * 0.9


def test_a_rail_that_does_not_follow_the_load_has_a_sentence_and_no_lag():
    steps = Steps.draw(0.5, 8, seed=2)
    trace = record({"update_period_s": 0.01, "noise_relative": 0.05}, lambda _: 20.0, steps.until_ns)
    found = rail_lag(trace, steps.edges_ns, steps.until_ns)
    assert found.lag_s is None
    assert found.problem == "hwmon:rail does not follow the load."


def test_a_rail_that_falls_with_the_load_does_not_follow_it():
    steps = Steps.draw(0.5, 6, seed=2, low_w=60.0, high_w=20.0)
    found = rail_lag(record({"update_period_s": 0.01}, steps.power_w, steps.until_ns), steps.edges_ns, steps.until_ns)
    assert "does not follow" in found.problem


def test_a_stuck_rail_says_so():
    steps = Steps.draw(0.5, 4, seed=2)
    trace = record({"update_period_s": 0.01}, lambda _: 20.0, steps.until_ns)
    found = rail_lag(trace, steps.edges_ns, steps.until_ns)
    assert found.lag_s is None
    assert "stood still" in found.problem


@pytest.mark.parametrize("kept", [0, 3])
def test_a_rail_without_readings_says_so(kept):
    steps = Steps.draw(0.5, 4, seed=2)
    trace = record(SENSORS["apm-xgene"], steps.power_w, steps.until_ns)
    few = replace(trace, time_ns=trace.time_ns[:kept], value=trace.value[:kept])
    assert "no readings to speak of" in rail_lag(few, steps.edges_ns, steps.until_ns).problem


def test_too_few_readings_between_the_edges_say_so():
    steps = Steps.draw(0.5, 4, seed=2)
    trace = record(SENSORS["apm-xgene"], steps.power_w, steps.until_ns)
    sparse = replace(trace, time_ns=trace.time_ns[::120].copy(), value=trace.value[::120].copy())
    assert "too few readings" in rail_lag(sparse, steps.edges_ns, steps.until_ns).problem


def test_a_recording_that_ends_early_gives_what_its_edges_showed():
    sensor = SENSORS["apm-xgene"]
    steps = Steps.draw(0.5, 8, seed=2)
    trace = record(sensor, steps.power_w, steps.until_ns)
    half = len(trace.time_ns) // 2
    found = rail_lag(
        replace(trace, time_ns=trace.time_ns[:half].copy(), value=trace.value[:half].copy()),
        steps.edges_ns,
        steps.until_ns,
    )
    assert 4 <= found.edges < 16
    assert abs(found.lag_s - true_lag_s(sensor)) <= 3 * found.lag_error_s + 2 * TICK_S


def test_the_uptime_does_not_matter():
    sensor = SENSORS["ina3221, filtered"]
    steps = Steps.draw(0.5, 5, seed=7)
    trace = record(sensor, steps.power_w, steps.until_ns)
    later_ns = 400 * 24 * 3600 * 10**9
    moved = replace(trace, time_ns=trace.time_ns + later_ns)
    here = rail_lag(trace, steps.edges_ns, steps.until_ns)
    there = rail_lag(moved, [edge + later_ns for edge in steps.edges_ns], steps.until_ns + later_ns)
    assert there.lag_s == pytest.approx(here.lag_s, abs=1e-9)


@pytest.mark.parametrize("name", ["nvml average", "ina3221, filtered", "nvidia-grace"])
def test_a_calibration_improves_the_energy_of_ramps(name):
    """A window that lies on a ramp is read late: with the lag the error is smaller, and the interval narrower."""
    sensor = SENSORS[name]
    lag = calibrated(sensor, seed=11)
    start_ns, end_ns = 4_003_000_000, 7_011_000_000

    def ramp_w(moment_ns: int) -> float:
        return 20.0 + 8e-9 * max(0, moment_ns)

    truth_j = (ramp_w(start_ns) + ramp_w(end_ns)) / 2 * (end_ns - start_ns) / 1e9
    trace = record(sensor, ramp_w, 12_000_000_000)
    with_lag = replace(trace, rail=replace(trace.rail, lag_s=lag.lag_s, lag_error_s=lag.lag_error_s))
    plain, better = rail_energy(trace, start_ns, end_ns), rail_energy(with_lag, start_ns, end_ns)
    assert abs(better.energy_j - truth_j) < abs(plain.energy_j - truth_j) + 0.02
    if name == "nvml average":
        assert abs(better.energy_j - truth_j) < 0.25 * abs(plain.energy_j - truth_j), "what nobody states is corrected"
    allowed_j = 2.5 * better.independent_j + 8 * TICK_S * 3
    assert abs(better.energy_j - truth_j) <= allowed_j


def test_the_rail_stays_as_it_was_described():
    assert calibrated(SENSORS["apm-xgene"], seed=3, cycles=4).rail == rail_of(SENSORS["apm-xgene"])
