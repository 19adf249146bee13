"""Energy at an arrival rate, the lowest lines over all rates, and where they cross."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.operating_point.arrivals import ENERGY, at_rate, collecting_ms
from powerlab.analysis.operating_point.crossover import crossover_interval
from powerlab.analysis.operating_point.envelope import PowerLine, crossing, envelope
from powerlab.analysis.summary import summarise
from tests.analysis.operating_point.idling_runs import idling, place

POSITIVE = st.floats(min_value=0.1, max_value=100)


@given(throughput=st.floats(min_value=10, max_value=500), idle=POSITIVE, more=POSITIVE, share=st.floats(0.01, 1))
def test_energy_at_a_rate_is_idle_power_over_the_rate_and_what_is_above_idle(throughput, idle, more, share):
    (run,) = idling({place(): (throughput, idle + more, idle)}, repeats=1, scatter=0.0)
    rate = throughput * share
    (seen,) = at_rate([run], rate)
    energy = seen.metric(ENERGY)
    assert energy.value == pytest.approx(idle / rate + more / throughput)
    assert energy.value * rate <= (idle + more) * (1 + 1e-9)  # idling never takes more power than being busy
    assert seen.metric("power_w") == run.metric("power_w")


def test_a_gain_that_both_powers_share_is_added_so_the_energy_is_known_no_better():
    (run,) = idling({place(): (100.0, 10.0, 5.0)}, repeats=1, scatter=0.0, gain_bound=0.005 * 3**0.5)
    (seen,) = at_rate([run], 10.0)
    assert len([line for line in seen.budget if line.metric == ENERGY]) == 1
    (line,) = [line for line in seen.budget if line.metric == ENERGY]
    assert line.standard_uncertainty / seen.metric(ENERGY).value == pytest.approx(0.005)


def test_a_run_that_cannot_keep_up_has_no_energy_at_that_rate():
    (run,) = idling({place(): (20.0, 10.0, 5.0)}, repeats=1, scatter=0.0)
    assert at_rate([run], 25.0)[0].metric(ENERGY) is None
    assert at_rate([run], 25.0)[0].metric("throughput_img_per_s") is not None


def test_the_first_image_of_a_batch_waits_for_the_last_one():
    assert collecting_ms(place(batch=1), 25.0) == 0
    assert collecting_ms(place(batch=4), 25.0) == pytest.approx(120)


LINES = st.lists(
    st.builds(
        lambda idle, above, start, length: PowerLine(
            idle_w=idle, above_idle_j=above, from_rate=start, to_rate=start + length
        ),
        st.floats(0.5, 20),
        st.floats(0.01, 1),
        st.sampled_from([0.0, 0.0, 3.0, 10.0]),
        st.floats(1, 100),
    ),
    min_size=1,
    max_size=6,
)


@given(lines=LINES, rate=st.floats(min_value=0.01, max_value=120))
def test_the_envelope_is_the_lowest_line_that_holds_at_every_rate(lines, rate):
    stretches = [one for one in envelope(lines) if one.from_rate < rate < one.to_rate]
    held = [line for line in lines if line.holds(rate)]
    edges = {edge for line in lines for edge in (line.from_rate, line.to_rate)}
    if rate in edges:
        return
    assert bool(stretches) == bool(held) or any(rate in {one.from_rate, one.to_rate} for one in envelope(lines))
    if stretches:
        (stretch,) = stretches
        assert lines[stretch.line].holds(rate)
        assert lines[stretch.line].power_w(rate) <= min(line.power_w(rate) for line in held) * (1 + 1e-9)


@given(lines=LINES)
def test_stretches_rise_without_overlap(lines):
    found = envelope(lines)
    assert all(one.to_rate <= other.from_rate for one, other in pairwise(found))


@given(idle=POSITIVE, saved=POSITIVE, above=POSITIVE, more=POSITIVE)
def test_lines_cross_where_both_take_the_same(idle, saved, above, more):
    slow = PowerLine(idle_w=idle, above_idle_j=above + more, from_rate=0, to_rate=1e9)
    fast = PowerLine(idle_w=idle + saved, above_idle_j=above, from_rate=0, to_rate=1e9)
    rate = crossing(slow, fast)
    assert rate == pytest.approx(saved / more)
    assert slow.power_w(rate) == pytest.approx(fast.power_w(rate))
    assert crossing(slow, slow) is None


def line_of(summary):
    idle, above = summary.metric("idle_power_w"), summary.metric("energy_above_idle_per_image_j")
    return PowerLine(idle_w=idle.value, above_idle_j=above.value, from_rate=0, to_rate=1e9)


def test_the_interval_of_a_crossover_holds_the_truth_about_as_often_as_it_says():
    slow, fast = place("SLOW"), place("FAST")
    truth = {slow: (40.0, 8.0, 3.0), fast: (100.0, 11.0, 5.0)}
    true_rate = (5.0 - 3.0) / (5.0 / 40.0 - 6.0 / 100.0)
    held = 0
    for seed in range(30):
        runs = idling(truth, repeats=5, seed=seed, scatter=0.02)
        sides = [[run for run in runs if run.point == point] for point in (slow, fast)]
        lines = [line_of(summary) for runs in sides for summary in summarise(runs)]
        found = crossover_interval(*sides, rate=crossing(*lines), highest=38.0)
        held += (found.low is None or found.low <= true_rate) and (found.high is None or true_rate <= found.high)
    assert held >= 26


def test_a_point_at_a_rate_is_the_median_of_its_repeats():
    runs = idling({place(): (100.0, 10.0, 5.0)}, repeats=5)
    (summary,) = summarise(at_rate(runs, 10.0))
    values = [one.metric(ENERGY).value for one in at_rate(runs, 10.0)]
    assert summary.metric(ENERGY).value == pytest.approx(median(values))
