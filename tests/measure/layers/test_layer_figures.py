"""Figures of layers against a truth that is known: do stated 95 % intervals hold it, and do layers add up to the whole?

Sensors are played by ``true_power``: gain, offset, step, refreshing and lag are drawn within what their rail states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.measure.energy.budget import Part
from powerlab.measure.energy.total import TotalEnergy, total_energy
from powerlab.measure.layers.figures import (
    Mean,
    added,
    board_step_ns,
    energy_ratio,
    for_time,
    mean_of_series,
    metric_j,
    over_idle,
    sum_of_layers,
    summed,
    time_ratio,
)
from tests.measure.true_power import Reads, Sensor, TruePower, rail_of

LAYERS, TRIALS, LEAST = 12, 40, 0.90
WINDOW_S, MARGIN_S, PERIOD_S = 2.0, 0.5, 0.01
IDLE_W = 7.0


@dataclass(frozen=True)
class World:
    """One network on one board: what its layers draw and take, and the sensor that sees it."""

    true_w: np.ndarray
    true_s: np.ndarray
    sensor: Sensor
    rng: np.random.Generator

    def window(self, watts: float) -> TotalEnergy:
        """What the sensor gives of a window in which the board draws so much."""
        times = np.arange(0, WINDOW_S + 2 * MARGIN_S, PERIOD_S) + self.rng.uniform(0, PERIOD_S)
        reads = Reads(
            time_ns=np.round((times + self.rng.uniform(-1e-3, 1e-3, times.size)) * 1e9).astype(np.int64),
            read_ns=100_000,
            off=self.rng.uniform(-1, 1, times.size),
        )
        power = TruePower.steps([-10.0, 10.0], [watts])
        total = TotalFormula(rails=(self.sensor.rail.key,), scope="all")
        trace = reads.file_trace(self.sensor, power)
        return total_energy(total, [trace], (round(MARGIN_S * 1e9), round((MARGIN_S + WINDOW_S) * 1e9)))

    def inferences(self, count: int) -> np.ndarray:
        """What the steps take of each inference in s; a slow moment slows them all."""
        slow = 1 + self.rng.gamma(1.0, 0.02, (count, 1))
        return self.true_s * slow * (1 + self.rng.normal(0, 0.03, (count, self.true_s.size)))

    @property
    def slowness(self) -> float:
        """The mean of what slows inferences."""
        return 1.02


def world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    rail = rail_of(RailQuantity.POWER, resolution=0.05, relative_error=0.015, offset=0.1, update_period_s=0.02)
    sensor = Sensor(
        rail=rail,
        refresh_s=0.02,
        phase=rng.uniform(),
        window_s=0.02,
        gain=rng.uniform(-0.015, 0.015),
        offset_w=rng.uniform(-0.1, 0.1),
    )
    return World(rng.uniform(9, 30, LAYERS), rng.gamma(1.0, 2e-3, LAYERS) + 2e-5, sensor, rng)


def holds(low: float | None, high: float | None, truth: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= truth <= high


def test_intervals_of_layers_hold_the_truth_as_often_as_they_say():
    hits, widths = [], []
    for seed in range(TRIALS):
        one = world(seed)
        idle, step_s = one.window(IDLE_W), one.inferences(120)
        for layer in range(LAYERS):
            energy = for_time(one.window(one.true_w[layer]), mean_of_series(step_s[:, layer]))
            truth_j = one.true_w[layer] * one.true_s[layer] * one.slowness
            figure = metric_j("layer_energy_j", energy)
            above = metric_j("layer_energy_above_idle_j", over_idle(energy, idle))
            truth_above_j = (one.true_w[layer] - IDLE_W) * one.true_s[layer] * one.slowness
            hits += [holds(figure.low, figure.high, truth_j), holds(above.low, above.high, truth_above_j)]
            widths.append((figure.high - figure.low) / truth_j)
    assert np.mean(hits) >= LEAST
    assert np.mean(widths) < 0.10  # not by being too wide to say anything


def test_the_sum_of_layers_holds_the_truth_of_the_whole():
    hits, widths = [], []
    for seed in range(TRIALS):
        one = world(seed)
        total = sum_of_layers([one.window(watts) for watts in one.true_w], one.inferences(120))
        truth_j = float(one.true_w @ one.true_s) * one.slowness
        figure = metric_j("layer_energy_j", total)
        hits.append(holds(figure.low, figure.high, truth_j))
        widths.append((figure.high - figure.low) / truth_j)
    assert np.mean(hits) >= LEAST
    assert np.mean(widths) < 0.06


def test_whole_and_layers_agree_where_the_board_draws_alone_what_it_draws_together():
    hits, widths = [], []
    for seed in range(TRIALS):
        one = world(seed)
        mean_w = float(one.true_w @ one.true_s / one.true_s.sum())
        whole = added([one.window(mean_w) for _ in range(3)])
        ratio = energy_ratio(whole, [one.window(watts) for watts in one.true_w], one.inferences(120))
        hits.append(abs(ratio.value - 1) <= ratio.half_width)
        widths.append(ratio.half_width)
    assert np.mean(hits) >= LEAST
    assert np.mean(widths) < 0.02  # the gain, which is 1.5 %, drops out


def test_a_whole_that_draws_more_than_its_layers_is_seen():
    one = world(1)
    mean_w = 1.1 * float(one.true_w @ one.true_s / one.true_s.sum())
    ratio = energy_ratio(added([one.window(mean_w)] * 3), [one.window(w) for w in one.true_w], one.inferences(120))
    assert ratio.value - ratio.half_width > 1.05
    assert ratio.value == pytest.approx(1.1, abs=0.02)


def energy(joules: float, seconds: float, **effects: float) -> TotalEnergy:
    parts = tuple(Part(origin="s:r", effect=name, standard_uncertainty=value) for name, value in effects.items())
    return TotalEnergy(energy_j=joules, duration_s=seconds, parts=parts, provenance=Provenance.SIMULATED)


def test_what_may_be_the_same_in_every_window_is_added_and_the_rest_is_not():
    parts = summed(energy(1, 1, gain=0.3, edge=0.3, offset=0.1).parts for _ in range(4))
    assert {part.effect: part.standard_uncertainty for part in parts} == pytest.approx(
        {"gain": 1.2, "offset": 0.4, "edge": 0.6}
    )


def test_several_windows_are_one_long_one():
    both = added([energy(10, 2, gain=0.1), energy(20, 3, gain=0.2)])
    assert (both.energy_j, both.duration_s, both.power_w) == (30, 5, 6)
    assert both.gain_j == pytest.approx(0.3)


def test_a_time_that_is_not_known_makes_an_energy_unsure():
    sure = for_time(energy(20, 2), Mean(value=0.003, half_width=None))
    unsure = for_time(energy(20, 2), Mean(value=0.003, half_width=0.001))
    assert sure.energy_j == unsure.energy_j == pytest.approx(0.03)
    assert sure.half_width_j == 0
    assert unsure.half_width_j == pytest.approx(0.01, rel=0.01)


def test_an_offset_does_not_touch_what_is_above_idle():
    idle = energy(14, 2, offset=0.2)
    found = over_idle(energy(20, 2, offset=0.2), idle)
    assert found.energy_j == pytest.approx(6)
    assert found.half_width_j == 0


def test_the_inferences_time_is_shared_out_as_the_engine_saw_it():
    shared = board_step_ns(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([8.0, 4.0]))
    assert shared.tolist() == [[2, 6], [2, 2]]


@given(
    st.lists(st.lists(st.floats(1, 1e6), min_size=3, max_size=3), min_size=1, max_size=20),
    st.floats(1, 1e9),
)
def test_steps_add_up_to_the_whole(rows, inference_ns):
    shared = board_step_ns(np.array(rows), np.full(len(rows), inference_ns))
    assert shared.sum(axis=1) == pytest.approx(np.full(len(rows), inference_ns))


@given(st.lists(st.floats(0.1, 1e3), min_size=1, max_size=300))
def test_a_mean_lies_in_its_interval_and_one_value_has_none(values):
    found = mean_of_series(np.array(values))
    assert found.value == pytest.approx(np.mean(values))
    assert (found.half_width is None) == (len(values) == 1)
    figure = found.metric("layer_time_ms", 1.0, Provenance.MEASURED)
    assert figure.low is None or 0 <= figure.low <= figure.value <= figure.high


def test_neighbours_that_hang_together_widen_the_interval():
    rng = np.random.default_rng(2)
    wandering = np.cumsum(rng.normal(0, 1, 2100)) + 100
    shuffled = rng.permutation(wandering)
    assert mean_of_series(wandering).half_width > 2 * mean_of_series(shuffled).half_width


def test_times_of_whole_and_layers_are_held_against_each_other():
    found = time_ratio(
        Mean(value=12.0, half_width=0.5), [Mean(value=4.0, half_width=0.1), Mean(value=6.0, half_width=None)]
    )
    assert found.value == pytest.approx(1.2)
    assert found.half_width == pytest.approx(1.2 * math.hypot(0.5 / 12, 0.1 / 10), rel=1e-3)
