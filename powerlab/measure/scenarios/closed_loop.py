"""Shared by closed-loop scenarios: the next query is sent when the last one is answered."""

from __future__ import annotations

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Workload
from powerlab.measure.percentiles.early_stopping import early_estimate
from powerlab.measure.percentiles.latency import TimedInferences, latency_metrics, throughput_metric
from powerlab.measure.scenarios.base import Ask
from powerlab.measure.worker.messages import Measure


class ClosedLoop:
    """Queries back to back, judged by one percentile; fulfils :class:`powerlab.measure.scenarios.base.ScenarioRules`.

    Args:
        early_metric: the metric of the early-stopping estimate.
        early_fraction: the percentile that it is of.
    """

    def __init__(self, early_metric: str, early_fraction: float) -> None:
        self._early_metric = early_metric
        self._early_fraction = early_fraction

    def ready(self, _ask: Ask, _workload: Workload, window: Measure, /) -> Measure:
        """Return the window as it is: there is nothing to find out."""
        return window

    def timed(self, ask: Ask, _workload: Workload, window: Measure, /) -> TimedInferences:
        """Run the window once."""
        return ask(window)

    def metrics(self, workload: Workload, timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
        """Return the percentiles, the early-stopping estimate where the queries are enough for it, and throughput."""
        estimate_ms = early_estimate(timed.ordered_ms, self._early_fraction)
        early = (
            () if estimate_ms is None else (Metric(name=self._early_metric, value=estimate_ms, provenance=provenance),)
        )
        return (
            *latency_metrics(timed, provenance),
            *early,
            throughput_metric(timed, workload.images_per_query, provenance),
        )
