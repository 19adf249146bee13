"""Offline: all images are available from the start and run batch after batch.

Nobody waits for one batch: how long it took is kept in the trace but is no user's latency, so no percentile is given.
"""

from __future__ import annotations

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Workload
from powerlab.measure.percentiles.latency import TimedInferences, throughput_metric
from powerlab.measure.scenarios.base import Ask
from powerlab.measure.worker.messages import Measure


class Offline:
    """Batches back to back; fulfils :class:`powerlab.measure.scenarios.base.ScenarioRules`."""

    def ready(self, _ask: Ask, _workload: Workload, window: Measure, /) -> Measure:
        """Return the window as it is: there is nothing to find out."""
        return window

    def timed(self, ask: Ask, _workload: Workload, window: Measure, /) -> TimedInferences:
        """Run the window once."""
        return ask(window)

    def metrics(self, workload: Workload, timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
        """Return throughput alone."""
        return (throughput_metric(timed, workload.images_per_query, provenance),)


OFFLINE = Offline()
