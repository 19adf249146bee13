"""Server: queries arrive at random (Poisson), and 99 % must be answered within a bound.

The figure is the load, in queries per second, at which they are (:mod:`powerlab.measure.scenarios.server_search`). A
query is one
inference. Latency counts from a query's arrival, so that waiting behind others is part of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Workload
from powerlab.measure.percentiles.early_stopping import confidence_held
from powerlab.measure.percentiles.latency import TimedInferences, latency_metrics, percentile_rank, throughput_metric
from powerlab.measure.scenarios.base import Ask
from powerlab.measure.scenarios.server_search import find_load, lighter
from powerlab.measure.worker.messages import Measure

JUDGED_AT = 0.99
MOST_WINDOWS = 3
"""How often the timed part is run, each time at a lower load, until it holds the bound."""


class Server:
    """Poisson arrivals within a bound; fulfils :class:`powerlab.measure.scenarios.base.ScenarioRules`."""

    def ready(self, ask: Ask, workload: Workload, window: Measure, /) -> Measure:
        """Return the window at the highest load that is expected to hold the bound.

        Raises:
            PowerlabError: not even the lightest load holds it.
        """
        return find_load(ask, workload, window)

    def timed(self, ask: Ask, workload: Workload, window: Measure, /) -> TimedInferences:
        """Run the window; where it breaks the bound, again at a lower load. The last one counts, held or not."""
        timed = ask(window)
        for _ in range(MOST_WINDOWS - 1):
            if holds(timed, workload.latency_bound_ms):
                break
            window = lighter(timed, workload, window)
            timed = ask(window)
        return timed

    def metrics(self, workload: Workload, timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
        """Return percentiles, throughput, how surely the bound is held, and, where it was, the load in queries/s."""
        return (
            *latency_metrics(timed, provenance),
            throughput_metric(timed, workload.images_per_query, provenance),
            *_bound_metrics(workload, timed, provenance),
        )


def over_bound(timed: TimedInferences, bound_ms: float) -> int:
    """Return how many queries took longer than the bound."""
    return int(np.count_nonzero(timed.ordered_ms > bound_ms))


def holds(timed: TimedInferences, bound_ms: float) -> bool:
    """Whether the 99th percentile lies within the bound."""
    return over_bound(timed, bound_ms) <= timed.count - percentile_rank(timed.count, JUDGED_AT)


def _bound_metrics(workload: Workload, timed: TimedInferences, provenance: Provenance) -> Iterator[Metric]:
    over = over_bound(timed, workload.latency_bound_ms)
    confidence = confidence_held(timed.count, over, JUDGED_AT)
    yield Metric(name="server_bound_confidence_percent", value=100 * confidence, provenance=provenance)
    if timed.count > 1 and holds(timed, workload.latency_bound_ms):
        # n arrivals enclose n - 1 gaps; how long the last answer took says nothing about the load.
        arriving_s = int(timed.start_ns[-1] - timed.start_ns[0]) / 1e9
        yield Metric(name="server_queries_per_s", value=(timed.count - 1) / arriving_s, provenance=provenance)


SERVER = Server()
