"""Energy arithmetic against signals whose energy is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity
from powerlab.domain.statistics import NORMAL_95
from powerlab.measure.energy.rail import covers, rail_energy

powers = st.floats(0.01, 500)
windows = st.tuples(st.floats(0.0, 0.9), st.floats(1.1, 9.9))


def half_width(energy) -> float:
    return NORMAL_95 * math.hypot(energy.gain_j, energy.independent_j)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


@given(power=powers, window=windows)
def test_constant_power_is_exact_for_a_power_rail(make_trace, power, window):
    trace = make_trace(np.arange(0, 11), np.full(11, power))
    energy = rail_energy(trace, ns(window[0]), ns(window[1]))
    assert energy.energy_j == pytest.approx(power * (window[1] - window[0]), rel=1e-6)
    assert half_width(energy) == pytest.approx(0, abs=1e-6)


@given(power=powers, window=windows)
def test_constant_power_is_exact_for_a_counter(make_rail, make_trace, power, window):
    rail = make_rail(quantity=RailQuantity.ENERGY)
    trace = make_trace(np.arange(0, 11), 1000 + power * np.arange(0, 11), rail)
    energy = rail_energy(trace, ns(window[0]), ns(window[1]))
    assert energy.energy_j == pytest.approx(power * (window[1] - window[0]), rel=1e-5)


@given(start=st.floats(0, 100), slope=st.floats(-5, 50), window=windows)
def test_a_ramp_is_exact_for_the_trapezoid(make_trace, start, slope, window):
    power = np.maximum(start + slope * np.arange(0, 11), 0) if slope >= 0 else 100 + slope * np.arange(0, 11)
    first = start if slope >= 0 else 100.0
    trace = make_trace(np.arange(0, 11), power)
    a, b = window
    truth = first * (b - a) + slope * (b * b - a * a) / 2
    assert rail_energy(trace, ns(a), ns(b)).energy_j == pytest.approx(truth, rel=1e-6, abs=1e-6)


@given(
    steps=st.lists(powers, min_size=20, max_size=20),
    counter=st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.floats(0, 0.99)),
    window=st.tuples(st.floats(3.0, 6.0), st.floats(8.0, 14.0)),
)
def test_a_counters_difference_is_off_by_what_passes_between_its_readings(
    make_rail, make_trace, steps, counter, window
):
    """This is no statistics: whatever the power did, it is no more at either end."""
    update, phase = counter
    edges = np.arange(0, 21)
    joules = np.concatenate(([0.0], np.cumsum(steps)))
    sampled = np.arange(0, 20, 0.25)
    latched = sampled if update == 0 else np.floor((sampled - phase * update) / update) * update + phase * update
    seen = np.interp(np.maximum(latched, 0), edges, joules)
    trace = make_trace(sampled, seen, make_rail(quantity=RailQuantity.ENERGY, update_period_s=update))
    energy = rail_energy(trace, ns(window[0]), ns(window[1]))
    truth = float(np.diff(np.interp(window, edges, joules))[0])
    assert abs(energy.energy_j - truth) <= 2 * max(steps) * (1.5 * update + 0.25) + 1e-6


def test_a_power_rails_interval_holds_the_truth_at_its_stated_rate(make_trace):
    """Steps at random times, sampled blindly: the truth is inside at least 95 times in 100."""
    generator = np.random.default_rng(1)
    inside = 0
    trials = 400
    for _ in range(trials):
        changes = np.concatenate(([0.0], np.sort(generator.uniform(0, 10, 12)), [10.0]))
        levels = generator.uniform(5, 30, 13)
        joules = np.concatenate(([0.0], np.cumsum(levels * np.diff(changes))))
        sampled = np.arange(0, 10, 0.05) + generator.uniform(0, 0.05)
        seen = levels[np.minimum(np.searchsorted(changes, sampled, side="right") - 1, 12)]
        energy = rail_energy(make_trace(sampled, seen), ns(1), ns(9))
        truth = float(np.diff(np.interp([1, 9], changes, joules))[0])
        inside += abs(energy.energy_j - truth) <= half_width(energy)
    assert inside / trials >= 0.95


def test_noise_of_single_samples_averages_out_and_is_covered(make_trace):
    generator = np.random.default_rng(2)
    times = np.arange(0, 10, 0.01)
    errors, widths = [], []
    for _ in range(200):
        energy = rail_energy(make_trace(times, 15 + generator.normal(0, 1, times.size)), ns(1), ns(9))
        errors.append(abs(energy.energy_j - 120))
        widths.append(half_width(energy))
    assert np.mean(np.array(errors) <= np.array(widths)) >= 0.93
    assert max(widths) < 120 * 0.01


@given(true_w=st.floats(0.5, 40), step_w=st.floats(0.01, 0.4))
def test_quantisation_of_a_steady_power_is_covered(make_rail, make_trace, true_w, step_w):
    seen = np.full(50, round(true_w / step_w) * step_w)
    energy = rail_energy(make_trace(np.arange(50) * 0.1, seen, make_rail(resolution=step_w)), ns(0), ns(4.9))
    assert abs(energy.energy_j - true_w * 4.9) <= half_width(energy) + 1e-9


@given(true_w=st.floats(5.0, 40), offset_uv=st.floats(-80, 80))
def test_an_ina3221s_offset_within_its_bound_is_covered(make_rail, make_trace, true_w, offset_uv):
    """80 µV over 4 mΩ at 19.2 V are 0.38 W on every reading, two of its steps."""
    rail = make_rail(resolution=0.192, offset=0.384)
    offset_w = offset_uv / 4000 * 19.2
    energy = rail_energy(make_trace(np.arange(50) * 0.1, np.full(50, true_w + offset_w), rail), ns(0), ns(4.9))
    assert abs(energy.energy_j - true_w * 4.9) <= half_width(energy) + 1e-9


@given(true_w=powers, gain=st.floats(-0.05, 0.05))
def test_a_gain_error_within_its_bound_is_covered_and_does_not_average_out(make_rail, make_trace, true_w, gain):
    rail = make_rail(relative_error=0.05)
    energy = rail_energy(make_trace(np.arange(1000), np.full(1000, true_w * (1 + gain)), rail), ns(1), ns(998))
    truth = true_w * 997
    assert abs(energy.energy_j - truth) <= half_width(energy) * (1 + 1e-6)
    assert half_width(energy) > 0.05 * 0.9 * truth


def test_a_slow_read_widens_a_counters_interval(make_rail, make_trace):
    rail = make_rail(quantity=RailQuantity.ENERGY)
    times = np.arange(0, 3, 0.001)
    fast = rail_energy(make_trace(times, 10 * times, rail, read_cost_ns=1_000), ns(1), ns(2))
    slow = rail_energy(make_trace(times, 10 * times, rail, read_cost_ns=20_000_000), ns(1), ns(2))
    at_each_end_j = 10 * 0.02 / 2 / math.sqrt(3)
    assert slow.other_j["edge"] == pytest.approx(math.sqrt(2) * at_each_end_j, rel=0.02), "both know nothing of another"
    assert half_width(slow) > half_width(fast)


def test_a_stale_sensor_at_a_step_widens_the_interval(make_rail, make_trace):
    times = np.arange(0, 4, 0.1)
    power = np.where(times < 1.45, 5.0, 25.0)
    fresh = rail_energy(make_trace(times, power, make_rail()), ns(1), ns(3))
    stale = rail_energy(make_trace(times, power, make_rail(update_period_s=0.5)), ns(1), ns(3))
    assert stale.other_j["edge"] > fresh.other_j["edge"] + 1


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (1, 12), (2, 2), (3, 2)])
def test_a_window_outside_the_samples_is_refused(make_trace, start, end):
    trace = make_trace(np.arange(0, 11), np.ones(11))
    with pytest.raises(ValueError, match="does not cover"):
        rail_energy(trace, ns(start), ns(end))


def test_covers_needs_two_samples(make_trace):
    assert not covers(make_trace([0.0], [1.0]), 0, 0)
    assert covers(make_trace([0.0, 1.0], [1.0, 1.0]), 0, 10**9)
