"""The search for a server's load, against queues whose answer is known and a worker that is simulated."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.scenarios.loops import arrivals
from powerlab.measure.scenarios.server import holds
from powerlab.measure.scenarios.server_search import (
    LIGHTEST,
    LONGEST_PROBE_S,
    MOST_PROBES,
    STEP_BACK,
    Queue,
    find_load,
    latencies_s,
    lighter,
    service_s,
)
from powerlab.measure.worker.messages import Measure

WINDOW = Measure(duration_s=60.0, min_inferences=100, margin_s=0.1, arrival_seed=(0, 0))
Service = Callable[[np.random.Generator, int, bool], "np.ndarray"]


def bound(bound_ms: float) -> Workload:
    return Workload(model="resnet50", batch_size=1, scenario=Scenario.SERVER, latency_bound_ms=bound_ms)


def exponential(mean_s: float) -> Service:
    return lambda generator, count, _: generator.exponential(mean_s, count)


def gamma(mean_s: float) -> Service:
    """Like inferences of one model: their standard deviation is a seventh of their mean."""
    return lambda generator, count, _: generator.gamma(50, mean_s / 50, count)


def constant(seconds: float) -> Service:
    return lambda _, count, __: np.full(count, seconds)


class SimulatedWorker:
    """Answers what a worker is asked whose queries take the times of a distribution, in no time at all."""

    def __init__(self, service: Service, seed: int = 0) -> None:
        self._service = service
        self._generator = np.random.default_rng(seed)
        self.asked: list[Measure] = []

    def __call__(self, request: Measure) -> TimedInferences:
        self.asked.append(request)
        if request.queries_per_s > 0:
            until_ns = request.duration_s * 1e9
            start_ns = []
            for time_ns in arrivals(0, request):
                if time_ns >= until_ns and len(start_ns) >= request.min_inferences:
                    break
                start_ns.append(time_ns)
            starts = np.array(start_ns)
            service = self._service(self._generator, starts.size, True)
            latency_s = latencies_s(np.diff(starts / 1e9, prepend=0.0), service)
            return TimedInferences(start_ns=starts, end_ns=starts + np.maximum(1, (latency_s * 1e9).astype(np.int64)))
        service = self._service(self._generator, 20_000, False)
        ends = np.cumsum(np.maximum(1, service * 1e9).astype(np.int64))
        count = max(request.min_inferences, int(np.searchsorted(ends, request.duration_s * 1e9)))
        return TimedInferences(start_ns=np.concatenate(([0], ends[: count - 1])), end_ns=ends[:count])


@given(
    gaps=st.lists(st.floats(0, 10), min_size=1, max_size=60),
    service=st.lists(st.floats(0, 10), min_size=60, max_size=60),
)
def test_waiting_follows_lindleys_recursion(gaps, service):
    waited, expected = 0.0, []
    for number, gap in enumerate(gaps):
        if number:
            waited = max(0.0, waited + service[number - 1] - gap)
        expected.append(waited + service[number])
    found = latencies_s(np.array(gaps), np.array(service[: len(gaps)]))
    assert found == pytest.approx(expected, abs=1e-9)


@given(
    gaps=st.lists(st.integers(1, 10**8), min_size=1, max_size=50),
    service=st.lists(st.integers(1, 10**8), min_size=50, max_size=50),
)
def test_service_is_what_a_latency_is_without_waiting(gaps, service):
    start_ns = np.cumsum(np.array(gaps, dtype=np.int64))
    end_ns, free_ns = [], 0
    for arrival_ns, takes_ns in zip(start_ns, service, strict=False):
        free_ns = max(free_ns, int(arrival_ns)) + takes_ns
        end_ns.append(free_ns)
    timed = TimedInferences(start_ns=start_ns, end_ns=np.array(end_ns))
    assert service_s(timed) * 1e9 == pytest.approx(service[: start_ns.size])


def held_share(queries_per_s: float, service_s: float, bound_s: float) -> float:
    """Return the share of queries within a bound where all take as long: M/D/1, Erlang 1909.

    P(W <= t) = (1 - rho) sum over k <= t / D of (-lambda (t - k D))^k / k! exp(lambda (t - k D)).
    """
    wait_s = bound_s - service_s
    terms = (
        (-queries_per_s * (wait_s - k * service_s)) ** k
        / math.factorial(k)
        * math.exp(queries_per_s * (wait_s - k * service_s))
        for k in range(int(wait_s / service_s) + 1)
    )
    return (1 - queries_per_s * service_s) * math.fsum(terms)


@pytest.mark.parametrize("bound_ms", [18.0, 25.0, 45.0, 80.0])
def test_the_load_found_is_that_of_a_queue_with_a_known_answer(bound_ms):
    found = find_load(SimulatedWorker(constant(0.010)), bound(bound_ms), replace(WINDOW, duration_s=600.0))
    assert 0.985 < held_share(found.queries_per_s, 0.010, bound_ms / 1e3) < 0.997
    assert held_share(1.5 * found.queries_per_s, 0.010, bound_ms / 1e3) < 0.99, "much more would break it"


@pytest.mark.parametrize("bound_ms", [60.0, 100.0, 200.0])
def test_a_simulated_queue_is_right_where_queries_take_very_different_times(bound_ms):
    """M/M/1: latency is exponential with rate mu - lambda, so its 99th percentile is ln(100) / (mu - lambda)."""
    seen_s = np.random.default_rng(2).exponential(0.010, 20_000)
    found = Queue.of(seen_s, bound_ms / 1e3, replace(WINDOW, duration_s=600.0)).highest_load()
    truth = 100.0 - math.log(100) / (bound_ms / 1e3)
    assert found is not None
    assert 0.8 * truth < found < 1.03 * truth


@pytest.mark.parametrize(("service", "bound_ms"), [(constant(0.01), 25.0), (gamma(0.01), 40.0)])
def test_windows_at_the_load_found_hold_the_bound_and_at_much_more_do_not(service, bound_ms):
    load = find_load(SimulatedWorker(service), bound(bound_ms), WINDOW)
    held = broken = 0
    for seed in range(20):
        worker = SimulatedWorker(service, seed)
        held += holds(worker(replace(load, arrival_seed=(seed,))), bound_ms)
        heavier = replace(load, arrival_seed=(seed,), queries_per_s=1.6 * load.queries_per_s)
        broken += not holds(worker(heavier), bound_ms)
    assert held >= 14
    assert broken >= 14


def test_a_bound_that_hardly_binds_allows_as_much_as_the_worker_can_answer():
    found = find_load(SimulatedWorker(constant(0.01)), bound(60_000.0), WINDOW).queries_per_s
    assert found == pytest.approx(100.0, rel=0.02)


@given(tight_ms=st.floats(12.0, 200.0), looser=st.floats(1.0, 4.0))
def test_a_looser_bound_never_allows_less(tight_ms, looser):
    seen_s = np.random.default_rng(1).gamma(20, 0.0005, 400)
    window = replace(WINDOW, duration_s=5.0)
    tight = Queue.of(seen_s, tight_ms / 1e3, window).highest_load()
    loose = Queue.of(seen_s, looser * tight_ms / 1e3, window).highest_load()
    assert (tight or 0.0) <= (loose or 0.0) * 1.02


def test_a_bound_below_what_a_query_takes_alone_is_refused_at_once_with_both_figures():
    worker = SimulatedWorker(constant(0.0123))
    with pytest.raises(PowerlabError, match=r"resnet50 cannot hold the bound of 5 ms .* takes 12\.3 ms in the median"):
        find_load(worker, bound(5.0), WINDOW)
    assert len(worker.asked) == 1
    assert worker.asked[0].queries_per_s == 0


def test_queries_that_take_longer_after_a_pause_lower_the_load():
    """A clock that falls while a core idles, for example: what is seen back to back is not what a server does."""

    def sleepy(_: np.random.Generator, count: int, arriving: bool) -> np.ndarray:
        return np.full(count, 0.013 if arriving else 0.010)

    worker = SimulatedWorker(sleepy)
    found = find_load(worker, bound(30.0), WINDOW).queries_per_s
    asleep = find_load(SimulatedWorker(constant(0.013)), bound(30.0), WINDOW).queries_per_s
    awake = find_load(SimulatedWorker(constant(0.010)), bound(30.0), WINDOW).queries_per_s
    assert found == pytest.approx(asleep, rel=0.1)
    assert found < 0.9 * awake


def test_a_search_takes_a_few_short_probes_and_leaves_the_window_as_it_was():
    worker = SimulatedWorker(gamma(0.01))
    window = replace(WINDOW, duration_s=600.0)
    found = find_load(worker, bound(100.0), window)
    assert replace(found, queries_per_s=0.0) == window
    alone, *probes = worker.asked
    assert alone.queries_per_s == 0
    assert 1 <= len(probes) <= MOST_PROBES
    assert all(probe.duration_s <= LONGEST_PROBE_S for probe in worker.asked)
    assert len({probe.arrival_seed for probe in probes}) == len(probes)


def test_a_load_too_light_for_a_probe_is_taken_as_it_is():
    """Queries of 1 s would need minutes for a probe of a hundred of them."""
    worker = SimulatedWorker(constant(1.0))
    found = find_load(worker, bound(2_500.0), replace(WINDOW, min_inferences=10))
    assert LIGHTEST < found.queries_per_s < 0.5
    assert len(worker.asked) == 1


def test_a_bound_that_only_an_idle_server_holds_is_refused():
    """Its queries may never meet: a window with enough of them would take for ever."""
    with pytest.raises(PowerlabError, match="even where it computes for 2 % of the time"):
        find_load(SimulatedWorker(constant(0.010)), bound(10.1), replace(WINDOW, duration_s=600.0))


def test_a_disturbed_probe_is_no_refusal():
    calls = itertools.count()

    def disturbed(_: np.random.Generator, count: int, arriving: bool) -> np.ndarray:
        return np.full(count, 0.5 if arriving and next(calls) == 0 else 0.01)

    found = find_load(SimulatedWorker(disturbed), bound(40.0), WINDOW)
    assert found.queries_per_s > 1


@given(queries_per_s=st.floats(1.0, 99.0), seed=st.integers(0, 100))
def test_after_a_broken_window_comes_less_load(queries_per_s, seed):
    window = replace(WINDOW, duration_s=2.0, queries_per_s=queries_per_s)
    timed = SimulatedWorker(exponential(0.01), seed)(window)
    after = lighter(timed, bound(30.0), window)
    assert 0 < after.queries_per_s <= STEP_BACK * queries_per_s
    assert after.arrival_seed != window.arrival_seed
