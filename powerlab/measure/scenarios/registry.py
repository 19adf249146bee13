"""Every scenario and its rules."""

from __future__ import annotations

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.percentiles.latency import TimedInferences, part_metrics
from powerlab.measure.scenarios.base import ScenarioRules
from powerlab.measure.scenarios.multi_stream import MULTI_STREAM
from powerlab.measure.scenarios.offline import OFFLINE
from powerlab.measure.scenarios.server import SERVER
from powerlab.measure.scenarios.single_stream import SINGLE_STREAM

SCENARIOS: dict[Scenario, ScenarioRules] = {
    Scenario.SINGLE_STREAM: SINGLE_STREAM,
    Scenario.MULTI_STREAM: MULTI_STREAM,
    Scenario.SERVER: SERVER,
    Scenario.OFFLINE: OFFLINE,
}


def latency_metrics_from(workload: Workload, timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
    """Return every figure that follows from the queries' times alone: latencies, throughput, and the server's load.

    With :func:`powerlab.measure.percentiles.latency.from_trace` a stored run gives them again.
    """
    return (*SCENARIOS[workload.scenario].metrics(workload, timed, provenance), *part_metrics(timed, provenance))
