"""What must not matter to energy, and what may only widen its interval, for jittered reads of real sensor models."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import rail_energy
from powerlab.measure.energy.total import total_energy
from powerlab.measure.recording.rails import usable_energy
from powerlab.measure.validity import Evidence, judge
from tests.measure.true_power import Reads, Sensor, TruePower, rail_of

COUNTER, POWER = RailQuantity.ENERGY, RailQuantity.POWER
WINDOW_NS = (3_000_000_000, 8_000_000_000)
SEEDS = st.integers(0, 2**32)
QUANTITIES = st.sampled_from([COUNTER, POWER])
PERIODS_S = st.sampled_from([0.0, 0.001, 0.1, 0.3])


def some_power(rng) -> TruePower:
    edges = np.concatenate(([0.0], np.sort(rng.uniform(0, 12, 9)), [12.0]))
    return TruePower([*edges], [*rng.uniform(0, 100, 10)], [*rng.uniform(0, 100, 10)])


def some_reads(rng, period_s: float = 0.05) -> Reads:
    planned = np.arange(1.0, 10.0, period_s) + rng.uniform(-0.3, 0.3, round(9 / period_s)) * period_s
    return Reads(
        time_ns=np.round(planned * 1e9).astype(np.int64), read_ns=2_000_000, off=rng.uniform(-1, 1, planned.size)
    )


def some_rail(quantity: RailQuantity, update_s: float, name: str = "true", **fields: object) -> Rail:
    return rail_of(quantity, name, update_period_s=update_s, resolution=0.01, relative_error=0.02, **fields)


def some_trace(rng, quantity: RailQuantity, update_s: float, name: str = "true", **fields: object) -> Trace:
    rail = some_rail(quantity, update_s, name, **fields)
    return some_reads(rng).file_trace(Sensor(rail=rail, refresh_s=update_s, phase=rng.uniform()), some_power(rng))


def without(trace: Trace, dropped) -> Trace:
    kept = np.ones(trace.time_ns.size, dtype=bool)
    kept[dropped] = False
    return replace(trace, time_ns=trace.time_ns[kept], value=trace.value[kept])


def half_width_j(energy) -> float:
    return math.hypot(energy.gain_j, energy.independent_j)


@given(seed=SEEDS, quantity=QUANTITIES, update_s=PERIODS_S, cut=st.floats(3.001, 7.999))
def test_two_windows_that_meet_add_up_to_their_union(seed, quantity, update_s, cut):
    trace = some_trace(np.random.default_rng(seed), quantity, update_s)
    cut_ns = round(cut * 1e9)
    whole = rail_energy(trace, *WINDOW_NS)
    parts = rail_energy(trace, WINDOW_NS[0], cut_ns), rail_energy(trace, cut_ns, WINDOW_NS[1])
    assert parts[0].energy_j + parts[1].energy_j == pytest.approx(whole.energy_j, rel=1e-9)
    assert parts[0].gain_j + parts[1].gain_j == pytest.approx(whole.gain_j, rel=1e-9)
    # A piece of a few samples does not know how much its samples scatter, and which part of that is noise.
    if 4.5 < cut < 6.5:
        assert half_width_j(whole) <= 2.5 * (half_width_j(parts[0]) + half_width_j(parts[1])) + 1e-9, "a cut adds none"


@given(seed=SEEDS, quantity=QUANTITIES, update_s=PERIODS_S, uptime_ns=st.integers(0, 2**62))
def test_an_uptime_of_a_hundred_years_changes_no_digit(seed, quantity, update_s, uptime_ns):
    trace = some_trace(np.random.default_rng(seed), quantity, update_s)
    later = replace(trace, time_ns=trace.time_ns + uptime_ns)
    assert rail_energy(later, *(one + uptime_ns for one in WINDOW_NS)) == rail_energy(trace, *WINDOW_NS)


@given(seed=SEEDS, update_s=PERIODS_S, wraps_at=st.integers(40_000, 200_000), start=st.integers(0, 10**6))
def test_a_counter_that_wraps_gives_what_one_gives_that_does_not(seed, update_s, wraps_at, start):
    """Reads lie 80 ms apart at most, so that a step is below 8 J, 800 counts, and 30 J where it updates slowly."""
    rng = np.random.default_rng(seed)
    power, reads = some_power(rng), some_reads(rng)
    endless = Sensor(rail=some_rail(COUNTER, update_s), refresh_s=update_s, start=start)
    short = replace(endless, wraps_at=wraps_at)
    traces = [reads.file_trace(sensor, power) for sensor in (endless, short)]
    assert traces[0].time_ns.size == traces[1].time_ns.size
    energies = [rail_energy(trace, *WINDOW_NS) for trace in traces]
    assert energies[1].energy_j == pytest.approx(energies[0].energy_j, rel=1e-9, abs=1e-9)
    assert half_width_j(energies[1]) == pytest.approx(half_width_j(energies[0]), rel=1e-9)


@given(seed=SEEDS, quantity=QUANTITIES, update_s=PERIODS_S, part=st.floats(0.01, 0.99), data=st.data())
def test_a_sample_more_on_a_straight_line_adds_nothing_and_makes_nothing_less_sure(
    seed, quantity, update_s, part, data
):
    trace = some_trace(np.random.default_rng(seed), quantity, update_s)
    before = data.draw(st.integers(0, trace.time_ns.size - 2))
    stamps = trace.time_ns[before : before + 2]
    between_ns = int(stamps[0]) + round(part * int(stamps[1] - stamps[0]))
    share = (between_ns - int(stamps[0])) / int(stamps[1] - stamps[0])
    value = trace.value[before] + share * (trace.value[before + 1] - trace.value[before])
    more = replace(
        trace,
        time_ns=np.insert(trace.time_ns, before + 1, between_ns),
        value=np.insert(trace.value, before + 1, value),
    )
    one, other = rail_energy(trace, *WINDOW_NS), rail_energy(more, *WINDOW_NS)
    # One that differs says when a counter was renewed: that moves the figure, within what was not known before.
    news_j = 3 * half_width_j(one) if quantity is COUNTER else 0.0
    assert other.energy_j == pytest.approx(one.energy_j, rel=1e-6, abs=news_j + 1e-6)
    if quantity is POWER:
        # Its neighbours' neighbours are others now, so what passes for noise changes by a sample's worth.
        assert half_width_j(other) <= half_width_j(one) * 1.05 + 1e-9


@given(seed=SEEDS, update_s=PERIODS_S, data=st.data())
def test_a_counter_needs_no_sample_between_its_ends(seed, update_s, data):
    trace = some_trace(np.random.default_rng(seed), COUNTER, update_s)
    reach_ns = 10**9
    inner = np.flatnonzero((trace.time_ns > WINDOW_NS[0] + reach_ns) & (trace.time_ns < WINDOW_NS[1] - reach_ns))
    dropped = data.draw(st.lists(st.sampled_from(inner.tolist()), unique=True))
    assert rail_energy(without(trace, dropped), *WINDOW_NS).energy_j == rail_energy(trace, *WINDOW_NS).energy_j


@given(seed=SEEDS, update_s=PERIODS_S, data=st.data())
def test_fewer_samples_of_power_that_rises_make_its_energy_less_sure(seed, update_s, data):
    """Of power that goes up and down this is no law: with the sample on a peak the peak is gone."""
    rng = np.random.default_rng(seed)
    reads = some_reads(rng)
    value = np.sort(rng.uniform(0, 100, reads.time_ns.size))
    trace = Trace(rail=some_rail(POWER, update_s), time_ns=reads.time_ns, value=value)
    reach_ns = 10**9
    inner = np.flatnonzero((trace.time_ns > WINDOW_NS[0] + reach_ns) & (trace.time_ns < WINDOW_NS[1] - reach_ns))
    dropped = data.draw(st.lists(st.sampled_from(inner.tolist()), unique=True))
    one, other = (rail_energy(each, *WINDOW_NS) for each in (trace, without(trace, dropped)))
    assert other.independent_j >= one.independent_j * 0.98, "but for a sample's worth of what passes for noise"


@given(seed=SEEDS, quantity=QUANTITIES, update_s=PERIODS_S, share=st.floats(0.05, 0.95))
def test_one_rail_seen_as_two_that_carry_a_share_each_is_the_same_rail(seed, quantity, update_s, share):
    """Two rails of one chip with one load: nothing that they are wrong about alike gets less by counting twice."""
    trace = some_trace(np.random.default_rng(seed), quantity, update_s)
    parts = [
        replace(trace, rail=replace(trace.rail, name=name, resolution=0.0), value=trace.value * part)
        for name, part in (("a", share), ("b", 1 - share))
    ]
    whole = total_energy(TotalFormula(rails=(trace.rail.key,), scope="s"), [trace], WINDOW_NS)
    both = total_energy(TotalFormula(rails=tuple(part.rail.key for part in parts), scope="s"), parts, WINDOW_NS)
    step_j = 2 * trace.rail.resolution
    assert both.energy_j == pytest.approx(whole.energy_j, rel=1e-9, abs=step_j), "the parts do not know of the step"
    assert both.gain_j == pytest.approx(whole.gain_j, rel=1e-9, abs=step_j)
    edge_j = rail_energy(trace, *WINDOW_NS).other_j["edge"]
    assert edge_j * (1 - 1e-9) - step_j <= both.independent_j <= whole.independent_j * (1 + 1e-9) + step_j


@given(seed=SEEDS, periods_s=st.lists(PERIODS_S, min_size=2, max_size=4), order=st.randoms())
def test_rails_of_different_kinds_and_periods_add_up_in_any_order(seed, periods_s, order):
    rng = np.random.default_rng(seed)
    traces = [
        some_trace(rng, rng.choice([COUNTER, POWER]), update_s, str(number), source=f"source {number % 2}")
        for number, update_s in enumerate(periods_s)
    ]
    shuffled = list(traces)
    order.shuffle(shuffled)
    totals = [
        total_energy(TotalFormula(rails=tuple(trace.rail.key for trace in each), scope="s"), traces, WINDOW_NS)
        for each in (traces, shuffled)
    ]
    singles = [total_energy(TotalFormula(rails=(trace.rail.key,), scope="s"), [trace], WINDOW_NS) for trace in traces]
    assert totals[0].energy_j == pytest.approx(math.fsum(one.energy_j for one in singles), rel=1e-12)
    assert totals[1].half_width_j == pytest.approx(totals[0].half_width_j, rel=1e-9)
    widths_j = [one.half_width_j for one in singles]
    assert max(widths_j) * (1 - 1e-9) <= totals[0].half_width_j <= sum(widths_j) * (1 + 1e-9)


@pytest.mark.parametrize(("slow_s", "verdict"), [(0.1, None), (0.4, Verdict.FLAGGED), (1.1, Verdict.VOID)])
def test_one_slow_rail_of_a_total_is_named_and_the_fast_ones_are_not(slow_s, verdict):
    rng = np.random.default_rng(1)
    traces = [some_trace(rng, POWER, 0.1, "fast"), some_trace(rng, POWER, slow_s, "slow")]
    evidence = Evidence(
        window_ns=WINDOW_NS,
        inference_count=100,
        total=TotalFormula(rails=tuple(trace.rail.key for trace in traces), scope="s"),
        traces=traces,
        sample_period_s=0.05,
    )
    findings = [finding for finding in judge(evidence) if finding.rule == "window-too-short"]
    assert [finding.verdict for finding in findings] == ([] if verdict is None else [verdict])
    assert all("slow" in finding.detail for finding in findings)
    assert (usable_energy(evidence, judge(evidence)) is None) == (verdict is Verdict.VOID)


@pytest.mark.parametrize("window_s", [0.2, 0.9, 4.9])
def test_a_window_shorter_than_a_few_periods_gives_no_energy_and_says_why(window_s):
    """Be it a run or an idle baseline: one value, or none, is no measurement."""
    trace = some_trace(np.random.default_rng(2), POWER, 1.0)
    evidence = Evidence(
        window_ns=(WINDOW_NS[0], WINDOW_NS[0] + round(window_s * 1e9)),
        inference_count=100,
        total=TotalFormula(rails=(trace.rail.key,), scope="s"),
        traces=(trace,),
        sample_period_s=0.05,
    )
    findings = judge(evidence)
    assert usable_energy(evidence, findings) is None
    (said,) = [finding.detail for finding in findings if finding.rule == "window-too-short"]
    assert said == f"truth:true updated only {int(window_s)} times in the window of {window_s:.2f} s (20 are wanted)"
