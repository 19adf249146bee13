"""Laws that the arithmetic of energy obeys whatever was sampled."""

# ruff: noqa: PLR0917 - fixtures and drawn values are positional by pytest's way
from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import POWER_QUANTITIES, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.validity import ENERGY_RULES, worst_verdict
from powerlab.measure.energy.rail import rail_energy
from powerlab.measure.energy.total import energy_metrics, total_energy
from powerlab.measure.recording.rails import usable_energy
from powerlab.measure.validity import Evidence, judge

WATTS = st.lists(st.floats(0.0, 500.0), min_size=12, max_size=12)
CUTS = st.tuples(st.floats(0.1, 3.0), st.floats(3.5, 6.0), st.floats(6.5, 10.9))
QUANTITIES = st.sampled_from(POWER_QUANTITIES)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def sampled(make_rail, make_trace, quantity, watts, **rail):
    """Return a trace of twelve samples, one a second."""
    value = np.array(watts) if quantity is RailQuantity.POWER else np.cumsum(watts)
    return make_trace(np.arange(12), value, make_rail(quantity=quantity, **rail))


@given(watts=WATTS, cuts=CUTS, quantity=QUANTITIES)
def test_two_neighbouring_windows_add_up_to_the_whole(make_rail, make_trace, watts, cuts, quantity):
    trace = sampled(make_rail, make_trace, quantity, watts)
    a, b, c = map(ns, cuts)
    parts = rail_energy(trace, a, b).energy_j + rail_energy(trace, b, c).energy_j
    assert rail_energy(trace, a, c).energy_j == pytest.approx(parts, rel=1e-6, abs=1e-6)


@given(watts=WATTS, cuts=CUTS, quantity=QUANTITIES, factor=st.floats(0.01, 100))
def test_energy_and_its_uncertainty_scale_with_the_unit(make_rail, make_trace, watts, cuts, quantity, factor):
    one = rail_energy(sampled(make_rail, make_trace, quantity, watts, relative_error=0.02), ns(cuts[0]), ns(cuts[2]))
    scaled = [watt * factor for watt in watts]
    other = rail_energy(sampled(make_rail, make_trace, quantity, scaled, relative_error=0.02), ns(cuts[0]), ns(cuts[2]))
    assert other.energy_j == pytest.approx(one.energy_j * factor, rel=1e-6, abs=1e-9)
    assert other.gain_j == pytest.approx(one.gain_j * factor, rel=1e-6, abs=1e-9)
    assert other.independent_j == pytest.approx(one.independent_j * factor, rel=1e-6, abs=1e-9)


@given(watts=WATTS, cuts=CUTS, quantity=QUANTITIES, shift=st.integers(-(10**15), 10**15))
def test_when_it_was_does_not_matter(make_rail, make_trace, watts, cuts, quantity, shift):
    trace = sampled(make_rail, make_trace, quantity, watts)
    moved = Trace(rail=trace.rail, time_ns=trace.time_ns + shift, value=trace.value)
    one = rail_energy(trace, ns(cuts[0]), ns(cuts[2]))
    other = rail_energy(moved, ns(cuts[0]) + shift, ns(cuts[2]) + shift)
    assert other.energy_j == pytest.approx(one.energy_j, rel=1e-5, abs=1e-3)


@given(
    # In steps of a real counter: sums of any floats would lose digits where the counter starts high.
    watts=st.lists(st.integers(0, 500 * 2**20).map(lambda steps: steps / 2**20), min_size=12, max_size=12),
    cuts=CUTS,
    start_j=st.integers(0, 10**6).map(float),
)
def test_where_a_counter_started_does_not_matter(make_rail, make_trace, watts, cuts, start_j):
    rail = make_rail(quantity=RailQuantity.ENERGY)
    value = np.cumsum(watts)
    one, other = (
        rail_energy(make_trace(np.arange(12), value + start, rail), ns(cuts[0]), ns(cuts[2]))
        for start in (0.0, start_j)
    )
    assert other.energy_j == pytest.approx(one.energy_j, rel=1e-6, abs=1e-6)


@given(watts=WATTS, cuts=CUTS, quantity=QUANTITIES)
def test_energy_lies_between_the_lowest_and_the_highest_power(make_rail, make_trace, watts, cuts, quantity):
    energy = rail_energy(sampled(make_rail, make_trace, quantity, watts), ns(cuts[0]), ns(cuts[2]))
    length_s = (ns(cuts[2]) - ns(cuts[0])) / 1e9
    assert min(watts) * length_s - 1e-6 <= energy.energy_j <= max(watts) * length_s + 1e-6
    assert energy.gain_j >= 0
    assert all(math.isfinite(part) and part >= 0 for part in energy.other_j.values())


@given(watts=WATTS, cuts=CUTS, quantity=QUANTITIES)
@pytest.mark.parametrize(
    ("field", "less", "more"),
    [("resolution", 0.0, 0.5), ("relative_error", 0.01, 0.05), ("update_period_s", 0.0, 0.4)],
)
def test_a_worse_sensor_never_has_a_smaller_uncertainty(
    make_rail, make_trace, watts, cuts, quantity, field, less, more
):
    moving = [watt + 1.0 for watt in watts]
    better, worse = (
        rail_energy(sampled(make_rail, make_trace, quantity, moving, **{field: value}), ns(cuts[0]), ns(cuts[2]))
        for value in (less, more)
    )
    if field == "update_period_s":
        # It is read later, too: what it says of the window is what it reads later, which is as sure or less. How much
        # a counter's steps differ is in part its own clock's doing, and taken out.
        assert quantity is RailQuantity.ENERGY or worse.other_j["edge"] >= better.other_j["edge"] - 1e-9
        return
    assert worse.energy_j == better.energy_j
    assert math.hypot(worse.gain_j, worse.independent_j) >= math.hypot(better.gain_j, better.independent_j) - 1e-9


@given(watts=WATTS)
def test_the_sum_of_rails_does_not_depend_on_their_order(make_rail, make_trace, watts):
    rails = [
        make_rail(name, relative_error=0.01, source=source) for name, source in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    traces = [make_trace(np.arange(12), np.array(watts) * (1 + index), rail) for index, rail in enumerate(rails)]
    totals = [
        total_energy(TotalFormula(rails=tuple(rail.key for rail in order), scope="s"), traces, (ns(1), ns(9)))
        for order in itertools.permutations(rails)
    ]
    assert all(total.energy_j == pytest.approx(totals[0].energy_j, rel=1e-12) for total in totals)
    assert all(total.half_width_j == pytest.approx(totals[0].half_width_j, rel=1e-9) for total in totals)
    assert totals[0].energy_j == pytest.approx(sum(rail_energy(trace, ns(1), ns(9)).energy_j for trace in traces))


def test_gains_of_one_source_are_added_and_of_two_sources_squared(make_rail, make_trace):
    def gain_j(sources) -> float:
        rails = [make_rail(str(index), relative_error=0.03, source=source) for index, source in enumerate(sources)]
        traces = [make_trace(np.arange(12), np.full(12, 10.0), rail) for rail in rails]
        formula = TotalFormula(rails=tuple(rail.key for rail in rails), scope="s")
        return total_energy(formula, traces, (ns(1), ns(9))).gain_j

    each = 0.03 * 80 / math.sqrt(3)
    assert gain_j(["x", "x"]) == pytest.approx(2 * each)
    assert gain_j(["x", "y"]) == pytest.approx(math.sqrt(2) * each)


@pytest.mark.parametrize("pair", list(itertools.combinations(Provenance, 2)), ids="-".join)
def test_rails_of_different_provenance_are_never_added(make_rail, make_trace, pair):
    rails = [make_rail(str(index), provenance=provenance) for index, provenance in enumerate(pair)]
    traces = [make_trace(np.arange(12), np.full(12, 10.0), rail) for rail in rails]
    formula = TotalFormula(rails=tuple(rail.key for rail in rails), scope="s")
    with pytest.raises(PowerlabError, match="side by side"):
        total_energy(formula, traces, (ns(1), ns(9)))


@given(
    watts=st.lists(st.floats(0.5, 300.0), min_size=12, max_size=12),
    images=st.integers(1, 10**6),
    gain=st.floats(0, 0.5),
)
def test_the_figures_of_a_run_agree_with_one_another(make_rail, make_trace, watts, images, gain):
    rail = make_rail(relative_error=gain)
    trace = make_trace(np.arange(12), np.array(watts), rail)
    formula = TotalFormula(rails=(rail.key,), scope="s")
    load, idle = (total_energy(formula, [trace], window) for window in ((ns(1), ns(9)), (ns(2), ns(4))))
    found = {metric.name: metric for metric in energy_metrics(load, idle, images)}
    assert set(found) < set(METRICS)
    rate = images / 8
    assert found["efficiency_img_per_s_per_w"].value == pytest.approx(rate / found["power_w"].value)
    assert found["energy_per_image_j"].value == pytest.approx(found["power_w"].value / rate)
    above = found["power_w"].value - found["idle_power_w"].value
    assert found["energy_above_idle_per_image_j"].value == pytest.approx(above / rate, rel=1e-6, abs=1e-9)
    for metric in found.values():
        assert (metric.low is None) == (metric.high is None)
        assert metric.low is None or metric.low <= metric.value <= metric.high
        assert metric.low is None or metric.low >= 0 or metric.name == "energy_above_idle_per_image_j"
    efficiency, energy = found["efficiency_img_per_s_per_w"], found["energy_per_image_j"]
    if efficiency.low is not None:
        assert efficiency.low == pytest.approx(1 / energy.high)
        assert efficiency.high == pytest.approx(1 / energy.low)


@given(watts=WATTS, window=st.tuples(st.integers(-2, 12), st.integers(-2, 14)), quantity=QUANTITIES)
def test_power_is_used_exactly_when_no_rule_forbids_it(make_rail, make_trace, watts, window, quantity):
    """Whatever the window and the samples are: a figure or a reason, and never neither, both, or an exception."""
    trace = sampled(make_rail, make_trace, quantity, watts)
    start, end = sorted(window)
    evidence = Evidence(
        window_ns=(ns(start), ns(end) + 1),
        inference_count=100,
        total=TotalFormula(rails=(trace.rail.key,), scope="s"),
        traces=(trace,),
        sample_period_s=1.0,
    )
    findings = judge(evidence)
    energy = usable_energy(evidence, findings)
    forbidden = any(finding.verdict is Verdict.VOID and finding.rule in ENERGY_RULES for finding in findings)
    assert (energy is None) == forbidden
    assert energy is None or energy.energy_j > 0
    assert worst_verdict(findings) in {Verdict.VALID, Verdict.FLAGGED, Verdict.VOID}
    assert all(finding.detail and not finding.detail.endswith(".") for finding in findings)
