"""Simulated scaling against closed forms, and laws that hold whatever the links are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.scaling.figures import scaled_point
from powerlab.analysis.scaling.links import LINKS, Link, parse_link
from powerlab.analysis.scaling.recorded import recorded_steps
from powerlab.analysis.scaling.ring import reduced_s
from powerlab.analysis.scaling.simulate import Bucket, RecordedSteps, SimulatedStep, simulate
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run
from recorded_run import recorded_run

LINK = Link(name="test", latency_s=1e-3, bytes_per_s=1e9)
EVEN = RecordedSteps(forward_s=np.full(3, 0.1), backward_s=np.full(3, 0.2), update_s=np.full(3, 0.02))
LINKS_DRAWN = st.builds(Link, name=st.just("any"), latency_s=st.floats(0, 0.01), bytes_per_s=st.floats(1e6, 1e12))


@given(st.integers(1, 64), st.floats(0, 1e9), LINKS_DRAWN)
def test_a_ring_whose_nodes_begin_together_takes_what_the_closed_form_says(nodes, size, link):
    took_s = 2 * (nodes - 1) * (link.latency_s + size / nodes / link.bytes_per_s)
    assert reduced_s(np.full(nodes, 3.0), size, link) == pytest.approx(np.full(nodes, 3.0 + took_s))


@given(st.lists(st.floats(0, 10), min_size=2, max_size=32), st.floats(0, 1e8))
def test_nobody_has_the_sum_before_the_slowest_has_begun_and_handed_on(ready, size):
    done_s = reduced_s(np.array(ready), size, LINK)
    assert done_s.min() >= max(ready) + (len(ready) - 1) * LINK.seconds(size / len(ready)) - 1e-9
    assert done_s.max() <= max(ready) + 2 * (len(ready) - 1) * LINK.seconds(size / len(ready)) + 1e-9


def test_gradients_sent_after_the_backward_pass_lengthen_the_step_by_the_ring():
    step = simulate(EVEN, [Bucket(size=64e6)], 8, LINK, seed=0)
    ring_s = 2 * 7 * (1e-3 + 8e6 / 1e9)
    assert step.wait_s == pytest.approx(ring_s)
    assert step.step_s == pytest.approx(0.32 + ring_s)


def test_what_is_sent_while_the_backward_pass_goes_on_is_not_waited_for():
    early = simulate(EVEN, [Bucket(size=8e6, ready_share=0.1), Bucket(size=1e3)], 8, LINK, seed=0)
    alone = simulate(EVEN, [Bucket(size=1e3)], 8, LINK, seed=0)
    assert early.step_s == pytest.approx(alone.step_s)


@given(st.integers(1, 16), st.lists(st.floats(0, 1e8), min_size=1, max_size=4), LINKS_DRAWN, st.integers(0, 9))
def test_overlapping_never_loses_and_waiting_is_part_of_the_step(nodes, sizes, link, seed):
    shares = np.linspace(0.2, 1.0, len(sizes))
    ahead = [Bucket(size=size, ready_share=float(share)) for size, share in zip(sizes, shares, strict=True)]
    late = [Bucket(size=size) for size in sizes]
    overlapped, after = (simulate(EVEN, one, nodes, link, seed=seed, steps=2) for one in (ahead, late))
    assert overlapped.step_s <= after.step_s + 1e-9
    assert after.step_s == pytest.approx(0.32 + after.wait_s)
    assert (nodes > 1) or after.wait_s == 0


def test_many_nodes_wait_for_the_slowest():
    uneven = RecordedSteps(forward_s=np.array([0.1, 0.1, 0.1, 0.4]), backward_s=np.full(4, 0.2), update_s=np.zeros(4))
    fast = Link(name="fast", latency_s=0.0, bytes_per_s=1e15)
    steps_s = [simulate(uneven, [Bucket(size=1.0)], nodes, fast, seed=1).step_s for nodes in (1, 2, 64)]
    assert steps_s[0] == pytest.approx(0.375, rel=0.15)
    assert steps_s[1] == pytest.approx(0.3 + 0.3 * 7 / 16, rel=0.15)
    assert steps_s[2] == pytest.approx(0.6, rel=0.01)


def run_of(power_w: float = 10.0, idle_w: float = 4.0) -> Run:
    metrics = (
        Metric(name="power_w", value=power_w, low=power_w - 1, high=power_w + 1, provenance=Provenance.MEASURED),
        Metric(name="idle_power_w", value=idle_w, low=idle_w - 1, high=idle_w + 1, provenance=Provenance.MEASURED),
    )
    return recorded_run().but(metrics=metrics).run


def test_figures_are_simulated_and_hold_idling_and_polling():
    step = SimulatedStep(nodes=4, step_s=0.5, half_width_s=0.01, wait_s=0.2)
    point = scaled_point(run_of(), step)
    figures = (point.throughput, point.power, point.energy_per_image)
    assert {figure.provenance for figure in figures} == {Provenance.SIMULATED}
    assert point.throughput.value == 4 * 4 / 0.5
    assert point.efficiency_percent == pytest.approx(60.0)
    energy = point.energy_per_image
    assert (energy.low, energy.value, energy.high) == pytest.approx(
        ((9 * 0.3 + 3 * 0.2) / 4, (10 * 0.3 + 7 * 0.2) / 4, 11 * 0.5 / 4)
    )
    assert point.power.value == pytest.approx(energy.value * 16 / 0.5)


def test_without_an_idle_baseline_there_is_no_energy():
    run = run_of()
    step = SimulatedStep(nodes=1, step_s=1.0, half_width_s=None, wait_s=0.0)
    bare = scaled_point(recorded_run().but(metrics=run.metrics[:1]).run, step)
    assert bare.power is bare.energy_per_image is None
    assert bare.throughput.low is None


def test_links_have_names_or_numbers():
    assert parse_link("10gbe") is LINKS["10gbe"]
    own = parse_link("30us:1.1GB/s")
    assert (own.latency_s, own.bytes_per_s) == pytest.approx((30e-6, 1.1e9))


@pytest.mark.parametrize("text", ["10gb", "", "30us", "30us:", "x:1GB/s", "0us:1GB/s", "30us:-1GB/s", "30us:1parsec"])
def test_other_links_are_refused_in_a_sentence(text):
    with pytest.raises(PowerlabError, match=r"^(unknown|invalid) link"):
        parse_link(text)


def test_a_run_that_infers_is_refused():
    recorded = recorded_run()
    with pytest.raises(PowerlabError, match="infers; scaling is simulated from a run that trains"):
        recorded_steps(recorded.run, recorded.traces)
