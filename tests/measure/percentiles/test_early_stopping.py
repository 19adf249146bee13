"""Early stopping against the figures that loadgen publishes, and against the binomial distribution itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.measure.percentiles.early_stopping import allowed_over, confidence_held, early_estimate


def chance_of_at_most(over: int, count: int, fraction: float) -> float:
    """Return P(B <= over) of a binomial B, added up term by term."""
    return math.fsum(math.comb(count, k) * (1 - fraction) ** k * fraction ** (count - k) for k in range(over + 1))


@pytest.mark.parametrize(
    ("fraction", "least"),
    [
        pytest.param(0.90, 64, id="single-stream"),
        pytest.param(0.99, 662, id="multi-stream"),
    ],
)
def test_an_estimate_needs_as_many_queries_as_mlperf_says(fraction, least):
    """Loadgen: "Processed at least 64 queries", and 662 for the 99th percentile."""
    latencies = np.arange(1.0, least + 1)
    assert early_estimate(latencies[:-1], fraction) is None
    assert early_estimate(latencies, fraction) == least


def test_a_server_proves_its_bound_with_459_queries_that_all_hold_it():
    assert allowed_over(458, 0.99) == -1
    assert allowed_over(459, 0.99) == 0
    assert confidence_held(458, 0, 0.99) < 0.99
    assert confidence_held(459, 0, 0.99) >= 0.99


@pytest.mark.parametrize(("count", "discarded"), [(2048, 172), (2116, 178), (2145, 181)])
def test_as_many_queries_are_discarded_as_in_loadgens_summaries(count, discarded):
    """Loadgen's ``mlperf_log_summary.txt``: "Would discard 172 highest latency queries" of 2048, at the 90th."""
    assert early_estimate(np.arange(1.0, count + 1), 0.90) == count - discarded


@given(count=st.integers(1, 400), fraction=st.sampled_from([0.5, 0.9, 0.99]))
def test_no_more_queries_may_be_over_than_the_binomial_allows(count, fraction):
    over = allowed_over(count, fraction)
    assert over == -1 or chance_of_at_most(over, count, fraction) <= 0.01 + 1e-12
    assert chance_of_at_most(over + 1, count, fraction) >= 0.01 - 1e-12


@given(count=st.integers(1, 400), over=st.integers(0, 400), fraction=st.sampled_from([0.5, 0.9, 0.99]))
def test_confidence_is_what_is_left_of_the_binomial(count, over, fraction):
    over = min(over, count)
    confidence = confidence_held(count, over, fraction)
    assert confidence == pytest.approx(1 - chance_of_at_most(over, count, fraction), abs=1e-9)
    assert 0.0 <= confidence <= 1.0


@given(latencies=st.lists(st.floats(0.1, 1e4), min_size=1, max_size=300), fraction=st.sampled_from([0.5, 0.9]))
def test_an_estimate_is_a_latency_that_happened_and_never_below_the_percentile(latencies, fraction):
    ordered = np.sort(latencies)
    estimate = early_estimate(ordered, fraction)
    assert estimate is None or estimate in ordered
    assert estimate is None or estimate >= ordered[math.ceil(fraction * ordered.size) - 1]


def test_an_estimate_is_above_the_true_percentile_99_times_of_100():
    generator = np.random.default_rng(5)
    truth = -math.log(0.1)
    held = sum(early_estimate(np.sort(generator.exponential(size=300)), 0.90) >= truth for _ in range(2000))
    assert held / 2000 >= 0.985


def test_a_million_queries_are_no_trouble():
    assert 9_000 < allowed_over(1_000_000, 0.99) < 10_000
