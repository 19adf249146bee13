"""The harness itself: its truth against plain sums, its sensors against what they are said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.power import Rail
from powerlab.domain.quantity import Provenance
from tests.truth.harness import FOCUSES, draw_machine, two_sets
from tests.truth.loads import SHAPES, draw_load
from tests.truth.sensors import ENERGY, POWER, Reads, TrueSensor, total_lag_s


def sensor(kind="hold", refresh_s=0.0, delay_s=0.0, **changes):
    rail = Rail(
        source="true",
        name="rail",
        quantity=ENERGY if kind == "counter" else POWER,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=refresh_s,
        provenance=Provenance.SIMULATED,
    )
    made = TrueSensor(
        rail=rail,
        share=1.0,
        kind=kind,
        refresh_s=refresh_s,
        phase=0.3,
        delay_s=delay_s,
        gain=0.0,
        offset_w=0.0,
        noise_w=0.0,
        seed=0,
    )
    return replace(made, **changes)


def reads(until_s, period_s=0.001):
    time_s = np.arange(0.0, until_s, period_s)
    return Reads(time_s=time_s, read_s=0.0, off=np.zeros(time_s.size))


def load_of(shape, seed=1, window_s=3.0):
    return draw_load(np.random.default_rng(seed), np.random.default_rng(2), shape, 10.0, window_s, 0.4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_true_energy_is_the_sum_of_the_true_power(shape):
    load = load_of(shape)
    middles_s = np.arange(load.window_s[0], load.window_s[1], 1e-5) + 5e-6
    assert load.energy_j(*load.window_s) == pytest.approx(float(load.watts(middles_s).sum()) * 1e-5, rel=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_machine_is_idle_before_and_under_load_a_margin_before_the_window(shape):
    load = load_of(shape)
    assert load.watts(load.begins_s - 0.01) == pytest.approx(10.0)
    assert load.window_s[0] >= load.begins_s + 0.4
    assert load.window_s[1] - load.window_s[0] >= 3.0 - 1e-9


@pytest.mark.parametrize(("kind", "refresh_s", "delay_s"), [("hold", 0.1, 0.02), ("mean", 0.1, 0.0), ("hold", 0, 0.05)])
def test_a_sensor_is_as_late_as_it_says(kind, refresh_s, delay_s):
    """The area between a step of the load and what the sensor shows of it is step times lag."""
    found = []
    for phase in np.linspace(0, 1, 21)[:-1]:
        one = sensor(kind, refresh_s, delay_s, phase=phase)
        load = load_of("steady", window_s=2.0)
        at = reads(2.0)
        shown_w = one.shown_w(load, at.moments_s)
        step_w = load.watts(1.9) - 10.0
        found.append(float(np.sum(load.watts(at.moments_s) - shown_w)) * 0.001 / step_w)
    assert np.mean(found) == pytest.approx(total_lag_s(one), abs=0.003)


def test_the_boards_own_sensor_model_follows_with_its_time_constant():
    load = load_of("steady", window_s=2.0)
    one = sensor("filter", delay_s=0.2)
    shown_w = one.shown_w(load, np.array([load.begins_s + 0.2, load.begins_s + 2.0]))
    step_w = load.watts(1.9) - 10.0
    assert (shown_w[0] - 10.0) / step_w == pytest.approx(1 - np.exp(-1), abs=0.01)
    assert shown_w[1] == pytest.approx(10.0 + step_w, rel=1e-3)


def test_a_counter_never_falls_and_counts_the_truth():
    load = load_of("periodic")
    trace = sensor("counter", 0.02).trace(load, reads(4.5))
    assert np.all(np.diff(trace.value) >= 0)
    assert trace.value[-1] - trace.value[0] == pytest.approx(load.energy_j(0.0, 4.499), abs=0.04 * 70)


@pytest.mark.parametrize("focus", FOCUSES)
def test_a_machine_and_its_runs_are_what_their_seeds_say(focus):
    one, other = (draw_machine(5, focus).record(6) for _ in range(2))
    assert one.truth_j == other.truth_j
    assert all(np.array_equal(a.value, b.value) for a, b in zip(one.traces, other.traces, strict=True))
    later = draw_machine(5, focus).record(7)
    assert any(not np.array_equal(a.time_ns, b.time_ns) for a, b in zip(one.traces, later.traces, strict=True))
    assert draw_machine(6, focus) != draw_machine(5, focus)


def test_every_error_stays_within_what_is_stated():
    for seed in range(100):
        for one in draw_machine(seed).sensors:
            assert abs(one.gain) <= one.rail.relative_error
            assert abs(one.offset_w) <= one.rail.offset
            assert one.delay_s >= 0
            assert total_lag_s(one) <= 1.5 * one.rail.update_period_s + 1e-9


def test_two_sets_are_runs_of_one_machine():
    ours, theirs = two_sets(3, repeats=4)
    assert len(ours) == len(theirs) == 4
    assert {one.total.rails for one in (*ours, *theirs)} == {ours[0].total.rails}
    assert len({one.truth_j for one in (*ours, *theirs)}) == 8
