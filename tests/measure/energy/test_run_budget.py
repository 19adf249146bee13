"""A run's budget: its lines make exactly the intervals that its figures state, whatever was recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.domain.budget import IDLE, combined, half_width, interval, of_metric
from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Contribution, EffectKind
from powerlab.measure.energy.budget import Part, above, lines_of, mean_of, scaled
from powerlab.measure.energy.idle import idle_around
from powerlab.measure.energy.total import TotalEnergy, energy_budget, energy_metrics, total_energy
from powerlab.protocol.wire import decode, encode

WINDOW = (2_000_000_000, 7_000_000_000)


def part(uncertainty: float, effect: str = "sampling", origin: str = "ina3221:VDD_IN") -> Part:
    return Part(origin=origin, effect=effect, standard_uncertainty=uncertainty)


def energy(joules: float, seconds: float = 10.0, parts: tuple[Part, ...] = ()) -> TotalEnergy:
    return TotalEnergy(energy_j=joules, duration_s=seconds, parts=parts, provenance=Provenance.MEASURED)


RAILS = st.lists(
    st.fixed_dictionaries(
        {
            "quantity": st.sampled_from([RailQuantity.POWER, RailQuantity.ENERGY]),
            "source": st.sampled_from(["ina3221", "hwmon", "nvml"]),
            "resolution": st.sampled_from([0.0, 0.001, 0.4]),
            "relative_error": st.sampled_from([0.0, 0.015, 0.1]),
            "update_period_s": st.sampled_from([0.0, 0.02, 0.3]),
            "offset": st.sampled_from([0.0, 0.2]),
            "lag_s": st.sampled_from([0.0, 0.03]),
            "lag_error_s": st.sampled_from([0.0, 0.004]),
        }
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(rails=RAILS, seed=st.integers(0, 10_000), images=st.integers(1, 10_000))
def test_the_stored_lines_make_the_stated_intervals(make_rail, make_trace, rails, seed, images):
    rng = np.random.default_rng(seed)
    made = [make_rail(f"rail{index}", **fields) for index, fields in enumerate(rails)]
    formula = TotalFormula(rails=tuple(rail.key for rail in made), scope="all")

    def recorded(level_w: float) -> TotalEnergy:
        time_s = np.arange(0, 9, 0.05) + rng.uniform(0, 0.01)
        traces = []
        for rail in made:
            power_w = np.abs(level_w + rng.normal(0, 0.5, time_s.size))
            value = np.cumsum(power_w) * 0.05 if rail.quantity is RailQuantity.ENERGY else power_w
            traces.append(make_trace(time_s, value, rail, read_cost_ns=600_000))
        return total_energy(formula, traces, WINDOW)

    load = recorded(12.0)
    before, after = (recorded(level_w) if rng.random() < 0.7 else None for level_w in (4.0, 5.0))
    idle = idle_around(before, after)
    budget = energy_budget(load, idle, images)
    assert decode(encode(list(budget)), list[Contribution]) == list(budget), "it can be stored"
    metrics = energy_metrics(load, idle, images)
    assert {line.metric for line in budget} <= {metric.name for metric in metrics}
    for metric in metrics:
        low, high = interval(metric.name, metric.value, half_width(of_metric(budget, metric.name)))
        if low is None:
            assert metric.low is None
        else:
            assert metric.low == pytest.approx(low)
            assert metric.high == pytest.approx(high)
    keys = {rail.key for rail in made} | {IDLE}
    assert {line.origin for line in budget} <= keys
    assert all(line.standard_uncertainty > 0 for line in budget)


def test_every_figure_has_its_lines_in_its_own_unit():
    budget = energy_budget(energy(200.0, 10.0, (part(2.0),)), energy(30.0, 5.0, (part(0.5),)), 100)
    found = {(line.metric, line.effect): line.standard_uncertainty for line in budget}
    assert found == pytest.approx(
        {
            ("power_w", "sampling"): 0.2,
            ("energy_per_image_j", "sampling"): 0.02,
            ("efficiency_img_per_s_per_w", "sampling"): 100 * 2.0 / 200.0**2,
            ("idle_power_w", "sampling"): 0.1,
            ("energy_above_idle_per_image_j", "sampling"): 0.02,
            ("energy_above_idle_per_image_j", "idle sampling"): 0.01,
        }
    )


def test_without_an_idle_baseline_there_are_no_lines_about_it():
    budget = energy_budget(energy(200.0, 10.0, (part(2.0),)), None, 100)
    assert {line.metric for line in budget} == {"power_w", "energy_per_image_j", "efficiency_img_per_s_per_w"}


def test_what_is_0_is_no_line():
    assert list(lines_of("power_w", [part(0.0), part(1.0, "gain")], 2.0)) == [
        *lines_of("power_w", [part(1.0, "gain")], 2.0)
    ]


def test_scatter_of_observations_is_of_type_a_and_what_somebody_states_of_type_b():
    kinds = {line.effect: line.kind for line in lines_of("power_w", [part(1.0), part(1.0, "gain")], 1.0)}
    assert kinds == {"sampling": EffectKind.A, "gain": EffectKind.B}
    (idle,) = lines_of("power_w", [part(1.0, "idle sampling")], 1.0)
    assert idle.kind is EffectKind.A


@pytest.mark.parametrize("effect", ["gain", "offset"])
def test_what_is_the_same_for_all_readings_acts_on_the_difference_from_idle(effect):
    assert above([part(3.0, effect)], [part(1.0, effect)]) == (part(2.0, effect),)
    assert above([part(0.3, effect)], [part(0.1 * 3, effect)]) == (part(0.0, effect),), "rounding is no difference"


@pytest.mark.parametrize("effect", ["sampling", "edge", "quantisation", "lag", "gap"])
def test_everything_else_is_there_twice(effect):
    assert above([part(3.0, effect)], [part(1.0, effect)]) == (part(3.0, effect), part(1.0, f"idle {effect}"))


def test_the_drift_between_baselines_is_a_line_of_its_own():
    drift = part(0.5, "drift", IDLE)
    assert above([part(3.0)], [drift]) == (part(3.0), drift)


def test_a_rail_that_only_the_baseline_has_keeps_its_gain():
    assert above([], [part(1.0, "gain")]) == (part(1.0, "idle gain"),)


@given(one=st.floats(0, 1e3), other=st.floats(0, 1e3))
def test_a_mean_keeps_what_both_share_and_averages_what_they_do_not(one, other):
    for effect in ("gain", "offset", "quantisation", "lag"):
        assert mean_of([part(one, effect)], [part(other, effect)])[0].standard_uncertainty == pytest.approx(
            (one + other) / 2
        )
    for effect in ("sampling", "edge"):
        assert mean_of([part(one, effect)], [part(other, effect)])[0].standard_uncertainty == pytest.approx(
            math.hypot(one, other) / 2
        )


def test_a_part_that_one_of_two_has_counts_half():
    assert mean_of([part(2.0)], []) == (part(1.0),)
    assert mean_of([part(2.0)], [part(4.0, "edge")]) == (part(1.0), part(2.0, "edge"))


@given(factor=st.floats(0, 1e3))
def test_parts_of_more_energy_are_larger(factor):
    assert scaled([part(2.0)], factor) == (part(2.0 * factor),)


def test_one_baseline_will_do_and_none_gives_none():
    one = energy(30.0)
    assert idle_around(one, None) is one
    assert idle_around(None, one) is one
    assert idle_around(None, None) is None


def test_the_idle_power_is_the_mean_of_both_baselines_however_long_they_were():
    found = idle_around(energy(10.0, 1.0), energy(120.0, 10.0))
    assert found.power_w == pytest.approx(11.0)
    assert found.energy_j == pytest.approx(11.0 * found.duration_s)


@given(before_w=st.floats(0.1, 50), after_w=st.floats(0.1, 50), seconds=st.floats(0.5, 20))
def test_half_of_what_the_baselines_differ_by_is_a_rectangle(before_w, after_w, seconds):
    found = idle_around(energy(before_w * 2, 2.0), energy(after_w * seconds, seconds))
    drift_w = combined(found.parts) / found.duration_s
    assert drift_w == pytest.approx(abs(before_w - after_w) / 2 / math.sqrt(3), abs=1e-9)


def test_the_drift_is_in_the_idle_power_and_in_the_energy_above_idle():
    idle = idle_around(energy(8.0, 2.0), energy(10.0, 2.0))
    budget = energy_budget(energy(200.0), idle, 100)
    drifts = {line.metric: line.standard_uncertainty for line in budget if line.effect == "drift"}
    assert drifts["idle_power_w"] == pytest.approx(0.5 / math.sqrt(3))
    assert drifts["energy_above_idle_per_image_j"] == pytest.approx(0.5 / math.sqrt(3) * 10 / 100)
    assert set(drifts) == {"idle_power_w", "energy_above_idle_per_image_j"}


def test_two_equal_baselines_leave_the_sensors_own_error_and_half_of_the_chance():
    parts = (part(1.0, "gain"), part(1.0, "sampling"))
    found = idle_around(energy(8.0, 2.0, parts), energy(8.0, 2.0, parts))
    by_effect = {one.effect: one.standard_uncertainty / found.duration_s for one in found.parts}
    assert by_effect == pytest.approx({"gain": 0.5, "sampling": 0.5 / math.sqrt(2), "drift": 0.0})
