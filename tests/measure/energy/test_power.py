"""Rails added up, and the figures made of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.measure.energy.budget import Part
from powerlab.measure.energy.total import TotalEnergy, energy_metrics, total_energy

WINDOW = (1_000_000_000, 9_000_000_000)


def energy(joules: float, seconds: float = 10.0, gain: float = 0.0, other: float = 0.0, **changes) -> TotalEnergy:
    fields = {"provenance": Provenance.MEASURED, **changes}
    parts = (
        Part(origin="ina3221:VDD_IN", effect="gain", standard_uncertainty=gain),
        Part(origin="ina3221:VDD_IN", effect="sampling", standard_uncertainty=other),
    )
    return TotalEnergy(energy_j=joules, duration_s=seconds, parts=parts, **fields)


def steady(make_trace, rail, power):
    return make_trace(np.arange(0, 11), np.full(11, power), rail)


@given(powers=st.lists(st.floats(0.1, 50), min_size=1, max_size=6))
def test_the_total_is_the_sum_of_the_formulas_rails_and_of_no_others(make_rail, make_trace, powers):
    rails = [make_rail(f"rail{index}") for index in range(len(powers))]
    traces = [steady(make_trace, rail, power) for rail, power in zip(rails, powers, strict=True)]
    traces.append(steady(make_trace, make_rail("sum of shunt voltages"), 1000.0))
    total = total_energy(TotalFormula(rails=tuple(rail.key for rail in rails), scope="all"), traces, WINDOW)
    assert total.power_w == pytest.approx(math.fsum(powers))
    assert total.duration_s == 8


def test_counters_keep_both_integrals_and_power_rails_have_one(make_rail, make_trace):
    counters = [make_rail(name, quantity=RailQuantity.ENERGY) for name in "ab"]
    rail = make_rail("c")
    seconds = np.arange(0, 11)
    traces = [
        make_trace(seconds, np.cumsum(np.full(11, 10.0)), counters[0]),
        make_trace(seconds, np.cumsum(np.linspace(4, 6, 11)), counters[1]),
        steady(make_trace, rail, 3.0),
    ]

    def total(*rails):
        return total_energy(TotalFormula(rails=tuple(one.key for one in rails), scope=""), traces, WINDOW)

    both = total(*counters)
    figures = {metric.name: metric for metric in energy_metrics(both, None, 10)}
    by_slopes, used = figures["power_by_slopes_w"], figures["power_w"]
    assert by_slopes.value == pytest.approx(used.value, rel=0.05)
    assert by_slopes.high - by_slopes.low == pytest.approx(used.high - used.low)
    assert total(rail).by_slopes_j is None
    assert total(*counters, rail).by_slopes_j is None
    assert "power_by_slopes_w" not in {metric.name for metric in energy_metrics(total(rail), None, 10)}


def test_gains_add_within_a_source_and_combine_as_squares_across_sources(make_rail, make_trace):
    same = [make_rail(name, relative_error=0.01) for name in "ab"]
    other = make_rail("c", relative_error=0.01, source="hwmon")
    traces = [steady(make_trace, rail, 10.0) for rail in (*same, other)]

    def gain(*rails) -> float:
        return total_energy(TotalFormula(rails=tuple(rail.key for rail in rails), scope=""), traces, WINDOW).gain_j

    one = gain(same[0])
    assert one == pytest.approx(0.01 * 80 / math.sqrt(3))
    assert gain(*same) == pytest.approx(2 * one)
    assert gain(same[0], other) == pytest.approx(math.sqrt(2) * one)


def test_rails_of_different_provenance_are_never_added(make_rail, make_trace):
    rails = (make_rail("a"), make_rail("b", provenance=Provenance.ESTIMATED))
    total = TotalFormula(rails=tuple(rail.key for rail in rails), scope="all")
    with pytest.raises(PowerlabError, match="different provenance"):
        total_energy(total, [steady(make_trace, rail, 1.0) for rail in rails], WINDOW)


@given(joules=st.floats(1, 1e5), relative=st.floats(0, 0.4), images=st.integers(1, 10**6))
def test_efficiency_is_images_per_joule_and_its_interval_is_the_energys_turned_over(joules, relative, images):
    metrics = {m.name: m for m in energy_metrics(energy(joules, other=relative * joules), None, images)}
    per_image, efficiency = metrics["energy_per_image_j"], metrics["efficiency_img_per_s_per_w"]
    assert efficiency.value * per_image.value == pytest.approx(1)
    assert efficiency.value == pytest.approx((images / 10) / metrics["power_w"].value)
    assert efficiency.low == pytest.approx(1 / per_image.high)
    assert efficiency.high == pytest.approx(1 / per_image.low)
    assert "idle_power_w" not in metrics


def test_an_energy_that_may_be_zero_gives_no_interval_of_efficiency():
    metrics = {m.name: m for m in energy_metrics(energy(10, other=20), None, 100)}
    assert metrics["power_w"].low == 0
    assert metrics["efficiency_img_per_s_per_w"].low is None
    assert metrics["efficiency_img_per_s_per_w"].high is None


def test_the_gain_error_acts_on_the_difference_from_idle_alone():
    load, idle = energy(200, gain=2.0), energy(50, seconds=5, gain=0.5)
    metrics = {m.name: m for m in energy_metrics(load, idle, 10)}
    above = metrics["energy_above_idle_per_image_j"]
    assert above.value == pytest.approx((200 - 100) / 10)
    assert above.high - above.value == pytest.approx(0.95 * math.sqrt(3) * 1.0 / 10), "a single rectangle"
    assert metrics["idle_power_w"].value == pytest.approx(10)


def test_every_figure_carries_the_powers_provenance():
    estimated = {"provenance": Provenance.ESTIMATED}
    metrics = energy_metrics(energy(200, **estimated), energy(50, **estimated), 10)
    assert {metric.provenance for metric in metrics} == {Provenance.ESTIMATED}
    with pytest.raises(PowerlabError, match="different provenance"):
        energy_metrics(energy(200), energy(50, **estimated), 10)
