"""Percentiles by nearest rank, and intervals that hold for any distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.quantity import Provenance
from powerlab.measure.percentiles.latency import (
    PERCENTILES,
    TimedInferences,
    interval_ranks,
    latency_metrics,
    percentile_rank,
    throughput_metric,
)


def timed(latencies_ns, pause_ns: int = 0) -> TimedInferences:
    latencies = np.asarray(latencies_ns, dtype=np.int64)
    ends = np.cumsum(latencies + pause_ns) - pause_ns
    return TimedInferences(start_ns=ends - latencies, end_ns=ends)


@given(count=st.integers(1, 3000), fraction=st.sampled_from(sorted(PERCENTILES.values())))
def test_the_nearest_rank_leaves_no_more_above_it_than_it_may(count, fraction):
    rank = percentile_rank(count, fraction)
    assert 1 <= rank <= count
    assert rank / count >= fraction - 1e-12
    assert rank == 1 or (rank - 1) / count < fraction


@given(count=st.integers(1, 2000), fraction=st.sampled_from([0.5, 0.9, 0.99]))
def test_interval_ranks_cover_at_least_95_percent_and_are_the_tightest(count, fraction):
    ranks = interval_ranks(count, fraction)
    exact = (
        [math.comb(count, k) * fraction**k * (1 - fraction) ** (count - k) for k in range(count + 1)]
        if count < 200
        else None
    )
    if ranks is None:
        # Even the extremes leave too much outside on one side.
        assert fraction**count > 0.025 or (1 - fraction) ** count > 0.025
        return
    low, high = ranks
    assert 1 <= low <= percentile_rank(count, fraction) <= high <= count
    if exact is not None:
        assert sum(exact[:low]) <= 0.025 + 1e-9
        assert sum(exact[: low + 1]) > 0.025 - 1e-9
        assert sum(exact[high:]) <= 0.025 + 1e-9


def test_known_ranks_of_a_median():
    assert interval_ranks(5, 0.5) is None
    assert interval_ranks(6, 0.5) == (1, 6)
    assert interval_ranks(100, 0.5) == (40, 61)


def test_the_99th_percentile_needs_hundreds_of_inferences_for_an_interval():
    assert interval_ranks(300, 0.99) is None
    assert interval_ranks(400, 0.99) is not None


@pytest.mark.parametrize(("fraction", "least"), [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_an_interval_needs_as_many_queries_as_the_method_says(fraction, least):
    assert interval_ranks(least - 1, fraction) is None
    assert interval_ranks(least, fraction) is not None


def test_intervals_hold_the_true_percentile_of_a_skewed_distribution():
    generator = np.random.default_rng(3)
    truth_ms = -math.log(0.1) * 10
    hits = 0
    for _ in range(300):
        metrics = {m.name: m for m in latency_metrics(timed(generator.exponential(10e6, 200) + 1), Provenance.MEASURED)}
        p90 = metrics["latency_p90_ms"]
        hits += p90.low <= truth_ms <= p90.high
    assert hits / 300 >= 0.93


@given(latencies=st.lists(st.integers(1, 10**9), min_size=1, max_size=60))
def test_percentiles_are_ordered_and_are_latencies_that_happened(latencies):
    metrics = latency_metrics(timed(latencies), Provenance.SIMULATED)
    values = [metric.value for metric in metrics]
    assert values == sorted(values)
    assert all(any(value == pytest.approx(latency / 1e6) for latency in latencies) for value in values)
    assert {metric.provenance for metric in metrics} == {Provenance.SIMULATED}
    for metric in metrics:
        assert (metric.low is None) == (metric.high is None)
        assert metric.low is None or metric.low <= metric.value <= metric.high


def test_throughput_counts_images_and_the_pauses_between_inferences():
    metric = throughput_metric(timed([8_000_000] * 100, pause_ns=2_000_000), 4, Provenance.MEASURED)
    assert metric.value == pytest.approx(4 * 100 / (100 * 0.010 - 0.002))
    assert metric.low <= metric.value <= metric.high


def test_throughput_of_too_few_inferences_has_no_interval():
    metric = throughput_metric(timed([8_000_000] * 3), 1, Provenance.MEASURED)
    assert metric.value == pytest.approx(125)
    assert metric.low is None


def test_the_throughput_interval_holds_the_truth_of_noisy_inferences():
    generator = np.random.default_rng(4)
    hits = 0
    for _ in range(300):
        metric = throughput_metric(timed(generator.gamma(4, 2.5e6, 500) + 1), 1, Provenance.MEASURED)
        hits += metric.low <= 100 <= metric.high
    assert hits / 300 >= 0.92
