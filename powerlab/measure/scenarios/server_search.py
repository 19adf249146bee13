"""Search for the highest load that meets a server's latency bound.

Queries that come at random wait for each other; how long follows from the load and from the time that each takes when
it is its turn (Lindley, *The theory of queues with a single server*, 1952). First they are asked one after the other,
to see how long they take alone. Of all loads that the queue could bear, bisection finds the highest at which 90 % of
many simulated windows hold the bound in their 99th percentile: windows as long as the timed part, whose queries take
the times that were seen, in the order in which they were. Short probes at that load then show what queries take under
it, with pauses between them, and the load is found anew until it stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Workload
from powerlab.measure.percentiles.latency import TimedInferences, percentile_rank
from powerlab.measure.scenarios.base import Ask
from powerlab.measure.worker.messages import Measure

JUDGED_AT = 0.99
ENOUGH_QUERIES = 100
"""With fewer the 99th percentile is the slowest query."""
SHORTEST_PROBE_S, LONG_PROBE_S, LONGEST_PROBE_S = 1.0, 10.0, 30.0
"""The first two bound a probe's length where queries are fast; where they are slow, it may be the third."""
PROBE_SHARE = 0.25
"""Of the timed part."""
MOST_PROBES = 3
SETTLED = 1.05
LIGHTEST = 0.02
"""The lightest load looked at, as a share of the one that keeps the worker busy all the time: a server that is idle for
longer would need minutes to see queries enough."""
USUAL_LOAD = 0.5
"""The share of the time in which a worker computes at a load that holds a bound of a few times a query, about."""
STEP_BACK = 0.9
_PRECISION = 1.01
_WINDOWS = 40
_WINDOWS_HELD = 36
_MOST_QUERIES = 20_000


def expected_search_s(duration_s: float, query_s: float) -> float:
    """Return how long a search takes, about: queries alone, and two probes at the usual load."""
    shortest_s, under_load_s = probe_s(duration_s), ENOUGH_QUERIES * query_s / USUAL_LOAD
    probes_s = 2 * max(shortest_s, under_load_s) if under_load_s <= LONGEST_PROBE_S else 0.0
    return max(shortest_s, ENOUGH_QUERIES * query_s) + probes_s


def probe_s(duration_s: float) -> float:
    """Return how long a probe lasts at least, for a timed part of that length."""
    return min(LONG_PROBE_S, max(SHORTEST_PROBE_S, PROBE_SHARE * duration_s))


def find_load(ask: Ask, workload: Workload, window: Measure) -> Measure:
    """Return the window with the load at which it is expected to hold the bound.

    Raises:
        PowerlabError: not even the lightest load holds it.
    """
    probe = replace(window, duration_s=probe_s(window.duration_s), min_inferences=ENOUGH_QUERIES, margin_s=0.0)
    alone_s = service_s(ask(probe))
    queries_per_s = _highest(alone_s, workload, window)
    if queries_per_s is None:
        raise PowerlabError(_refusal(alone_s, workload))
    seen_s = np.empty(0)
    for number in range(MOST_PROBES):
        if ENOUGH_QUERIES / queries_per_s > LONGEST_PROBE_S:
            break  # it would take too long to see them
        seed = (*window.arrival_seed, number)
        probed = ask(replace(probe, queries_per_s=queries_per_s, arrival_seed=seed))
        seen_s = np.concatenate((seen_s, service_s(probed)))
        before, queries_per_s = queries_per_s, _highest(seen_s, workload, window) or queries_per_s / 2
        if 1 / SETTLED <= queries_per_s / before <= SETTLED:
            break
    return replace(window, queries_per_s=queries_per_s)


def lighter(timed: TimedInferences, workload: Workload, window: Measure) -> Measure:
    """Return the window at a lower load, after one that broke the bound, with other arrivals."""
    at_most = STEP_BACK * window.queries_per_s
    found = _highest(service_s(timed), workload, window)
    queries_per_s = at_most / 2 if found is None else min(at_most, found)
    return replace(window, queries_per_s=queries_per_s, arrival_seed=(*window.arrival_seed, MOST_PROBES))


def service_s(timed: TimedInferences) -> NDArray[np.float64]:
    """Return how long each query took from when it was its turn, without its waiting for others, in s."""
    turn_ns = timed.start_ns.copy()
    np.maximum(turn_ns[1:], timed.end_ns[:-1], out=turn_ns[1:])
    return (timed.end_ns - turn_ns) / 1e9


def _highest(seen_s: NDArray[np.float64], workload: Workload, window: Measure) -> float | None:
    queue = Queue.of(seen_s, workload.latency_bound_ms / 1e3, window)
    return queue.highest_load()


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A simulated server, and a bound on what its queries may take.

    Attributes:
        gaps: float64, shape (windows, queries): time between arrivals, in means of it.
        service_s: float64, shape (windows, queries): how long each query takes when it is its turn.
        bound_s: what the 99th percentile must hold.
        duration_s: how long a window lasts.
        min_queries: how many queries it holds at least.
    """

    gaps: NDArray[np.float64]
    service_s: NDArray[np.float64]
    bound_s: float
    duration_s: float
    min_queries: int

    @classmethod
    def of(cls, seen_s: NDArray[np.float64], bound_s: float, window: Measure) -> Queue:
        """Return the queue of a window whose queries take the times that were seen, from a random one of them on."""
        generator = np.random.default_rng(window.arrival_seed)
        most = max(window.min_inferences, int(window.duration_s / float(seen_s.mean())))
        count = min(_MOST_QUERIES, most)
        first = generator.integers(seen_s.size, size=(_WINDOWS, 1))
        return cls(
            gaps=generator.exponential(size=(_WINDOWS, count)),
            service_s=seen_s[(first + np.arange(count)) % seen_s.size],
            bound_s=bound_s,
            duration_s=window.duration_s,
            min_queries=window.min_inferences,
        )

    @property
    def busy_queries_per_s(self) -> float:
        """The load that keeps it busy all the time; no higher one can be borne for long."""
        return 1.0 / float(self.service_s.mean())

    def held(self, queries_per_s: float) -> bool:
        """Whether nine windows of ten hold the bound at a load."""
        count = min(self.gaps.shape[1], max(self.min_queries, int(queries_per_s * self.duration_s), 1))
        latency_s = latencies_s(self.gaps[:, :count] / queries_per_s, self.service_s[:, :count])
        over = np.count_nonzero(latency_s > self.bound_s, axis=1)
        return int(np.count_nonzero(over <= count - percentile_rank(count, JUDGED_AT))) >= _WINDOWS_HELD

    def highest_load(self) -> float | None:
        """Return the highest load, in queries/s, at which the bound is held; None where it never is."""
        low, high = LIGHTEST * self.busy_queries_per_s, self.busy_queries_per_s
        if not self.held(low):
            return None
        if self.held(high):
            return high
        while high / low > _PRECISION:
            middle = (low * high) ** 0.5
            low, high = (middle, high) if self.held(middle) else (low, middle)
        return low


def latencies_s(gap_s: NDArray[np.float64], service_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return waiting and service of queries that are answered one at a time, in order, by a server that begins idle.

    A query waits for what the one before it had left when it came: ``w[k] = max(0, w[k-1] + s[k-1] - g[k])`` (Lindley,
    1952), whose sum is how far a random walk is above its lowest point so far.

    Args:
        gap_s: shape (..., n): time from the arrival before to this one's; the first is not looked at.
        service_s: shape (..., n).
    """
    walk = np.zeros_like(service_s)
    np.cumsum(service_s[..., :-1] - gap_s[..., 1:], axis=-1, out=walk[..., 1:])
    return walk - np.minimum.accumulate(walk, axis=-1) + service_s


def _refusal(alone_s: NDArray[np.float64], workload: Workload) -> str:
    ordered_ms = np.sort(alone_s) * 1e3
    median_ms, slow_ms = (ordered_ms[percentile_rank(ordered_ms.size, fraction) - 1] for fraction in (0.5, JUDGED_AT))
    return (
        f"{workload.model} cannot hold the bound of {workload.latency_bound_ms:g} ms even where it computes for "
        f"{100 * LIGHTEST:g} % of the time: a query alone takes {median_ms:.3g} ms in the median and {slow_ms:.3g} ms "
        "in the 99th percentile here; give a higher bound, or make it faster with more threads or a smaller batch."
    )
