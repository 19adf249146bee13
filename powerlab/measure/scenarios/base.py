"""The interface of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Workload
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.worker.messages import Measure

Ask = Callable[[Measure], TimedInferences]
"""Lets the worker run queries and returns when each began and ended; raises as the worker's ``measure`` does."""


class ScenarioRules(Protocol):
    """How the timed part of a scenario's run is made, and which figures it gives."""

    def ready(self, ask: Ask, workload: Workload, window: Measure, /) -> Measure:
        """Find out, before power is recorded, what the timed part has to be; return what to ask for then.

        Raises:
            PowerlabError: the workload cannot be run in this scenario, for a reason the user can fix.
        """
        ...

    def timed(self, ask: Ask, workload: Workload, window: Measure, /) -> TimedInferences:
        """Run the timed part, while power is recorded."""
        ...

    def metrics(self, workload: Workload, timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
        """Return latency and throughput, from nothing but the queries' times."""
        ...
