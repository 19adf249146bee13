"""What each scenario says of its queries' times, and that a stored trace says the same again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.percentiles.latency import PERCENTILES, TimedInferences, from_trace, latency_trace
from powerlab.measure.scenarios.registry import SCENARIOS, latency_metrics_from
from powerlab.measure.scenarios.server import MOST_WINDOWS
from powerlab.measure.worker.messages import Measure

WINDOW = Measure(duration_s=1.0, min_inferences=10, margin_s=0.1, queries_per_s=50.0, arrival_seed=(0, 0))


def workload(scenario: Scenario, batch_size: int = 1, bound_ms: float = 0.0) -> Workload:
    return Workload(model="net", batch_size=batch_size, scenario=scenario, latency_bound_ms=bound_ms)


def evenly(count: int, latency_ms: float, every_ms: float) -> TimedInferences:
    """Return queries that come at even times and all take as long."""
    start_ns = 5_000_000_000 + (np.arange(count) * every_ms * 1e6).astype(np.int64)
    return TimedInferences(start_ns=start_ns, end_ns=start_ns + round(latency_ms * 1e6))


def figures(of: Workload, timed: TimedInferences) -> dict[str, float]:
    return {metric.name: metric.value for metric in latency_metrics_from(of, timed, Provenance.MEASURED)}


def test_every_scenario_has_its_rules_and_known_metrics():
    assert set(SCENARIOS) == set(Scenario)
    for scenario in Scenario:
        assert set(figures(workload(scenario, bound_ms=100.0), evenly(700, 8, 10))) <= set(METRICS)


def test_single_stream_gives_percentiles_and_the_early_estimate_of_its_90th():
    found = figures(workload(Scenario.SINGLE_STREAM), evenly(64, 8, 8))
    assert set(found) == {*PERCENTILES, "latency_p90_early_ms", "throughput_img_per_s"}
    assert found["latency_p90_early_ms"] == pytest.approx(8)
    assert found["throughput_img_per_s"] == pytest.approx(125)


def test_too_few_queries_have_no_early_estimate():
    assert "latency_p90_early_ms" not in figures(workload(Scenario.SINGLE_STREAM), evenly(63, 8, 8))
    assert "latency_p99_early_ms" not in figures(workload(Scenario.MULTI_STREAM), evenly(661, 8, 8))


@pytest.mark.parametrize("batch_size", [1, 2, 4, 8])
def test_a_query_of_multi_stream_holds_eight_images_whatever_the_batch(batch_size):
    query = workload(Scenario.MULTI_STREAM, batch_size)
    found = figures(query, evenly(662, 40, 40))
    assert query.inferences_per_query * batch_size == query.images_per_query == 8
    assert found["latency_p50_ms"] == pytest.approx(40)
    assert found["latency_p99_early_ms"] == pytest.approx(40)
    assert found["throughput_img_per_s"] == pytest.approx(8 / 0.040)


@pytest.mark.parametrize("scenario", [Scenario.SINGLE_STREAM, Scenario.OFFLINE, Scenario.SERVER])
def test_elsewhere_a_query_is_one_inference(scenario):
    query = workload(scenario, batch_size=4, bound_ms=100.0)
    assert (query.images_per_query, query.inferences_per_query) == (4, 1)
    assert figures(query, evenly(100, 40, 40))["throughput_img_per_s"] == pytest.approx(100)


def test_offline_gives_no_latency_because_nobody_waits_for_one_batch():
    assert set(figures(workload(Scenario.OFFLINE, 8), evenly(50, 80, 80))) == {"throughput_img_per_s"}


def test_a_server_gives_the_load_at_which_its_queries_came():
    found = figures(workload(Scenario.SERVER, bound_ms=30.0), evenly(500, 25, 10))
    assert found["server_queries_per_s"] == pytest.approx(100)
    assert found["server_bound_confidence_percent"] == pytest.approx(100 * (1 - 0.99**500))


def test_a_server_that_breaks_its_bound_has_no_load_within_it():
    timed = evenly(200, 25, 10)
    timed.end_ns[:3] += 40_000_000
    found = figures(workload(Scenario.SERVER, bound_ms=30.0), timed)
    assert "server_queries_per_s" not in found
    assert found["latency_p99_ms"] > 30.0
    assert found["server_bound_confidence_percent"] < 50


def test_one_query_in_a_hundred_may_be_late():
    timed = evenly(200, 25, 10)
    timed.end_ns[:2] += 40_000_000
    assert "server_queries_per_s" in figures(workload(Scenario.SERVER, bound_ms=30.0), timed)


@given(
    scenario=st.sampled_from(Scenario),
    gaps_ns=st.lists(st.integers(1, 10**8), min_size=1, max_size=80),
    latency_ns=st.lists(st.integers(1, 10**8), min_size=80, max_size=80),
    begin_ns=st.integers(1, 10**17),
)
def test_a_stored_trace_gives_every_figure_again(scenario, gaps_ns, latency_ns, begin_ns):
    start_ns = begin_ns + np.cumsum(np.array(gaps_ns, dtype=np.int64))
    timed = TimedInferences(start_ns=start_ns, end_ns=start_ns + np.array(latency_ns[: start_ns.size]))
    trace = latency_trace(timed, Provenance.SIMULATED)
    assert np.all(np.diff(trace.time_ns) > 0)
    again = from_trace(trace)
    assert again.window_ns == timed.window_ns
    of = workload(scenario, bound_ms=50.0)
    assert latency_metrics_from(of, again, Provenance.SIMULATED) == latency_metrics_from(
        of, timed, Provenance.SIMULATED
    )


@pytest.mark.parametrize("scenario", [Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE])
def test_without_arrivals_the_window_is_run_once_as_it_is(scenario):
    asked = []

    def ask(window: Measure) -> TimedInferences:
        asked.append(window)
        return evenly(20, 10, 10)

    rules, of = SCENARIOS[scenario], workload(scenario)
    assert rules.ready(ask, of, WINDOW) == WINDOW
    assert asked == []
    rules.timed(ask, of, WINDOW)
    assert asked == [WINDOW]


def test_a_window_that_breaks_the_bound_is_run_again_at_less_load():
    asked = []

    def ask(window: Measure) -> TimedInferences:
        asked.append(window)
        return evenly(200, 90 if len(asked) == 1 else 20, 20)

    of = workload(Scenario.SERVER, bound_ms=30.0)
    timed = SCENARIOS[Scenario.SERVER].timed(ask, of, WINDOW)
    assert [window.queries_per_s for window in asked] == [50.0, pytest.approx(asked[1].queries_per_s)]
    assert asked[1].queries_per_s <= 45.0
    assert asked[1].arrival_seed != asked[0].arrival_seed
    assert "server_queries_per_s" in figures(of, timed)


def test_a_server_gives_up_after_a_few_windows_and_keeps_the_last_one():
    asked = []

    def ask(window: Measure) -> TimedInferences:
        asked.append(window.queries_per_s)
        return evenly(200, 90, 20)

    of = workload(Scenario.SERVER, bound_ms=30.0)
    timed = SCENARIOS[Scenario.SERVER].timed(ask, of, WINDOW)
    assert len(asked) == MOST_WINDOWS
    assert asked == sorted(asked, reverse=True)
    assert "server_queries_per_s" not in figures(of, timed)
