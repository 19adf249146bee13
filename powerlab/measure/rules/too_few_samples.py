"""``too-few-samples``: fewer queries than the scenario's percentile needs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from powerlab.domain.run import Verdict
from powerlab.domain.workload import Scenario
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement

MIN_INFERENCES = 10
JUDGED_AT: dict[Scenario, Fraction] = {
    Scenario.SINGLE_STREAM: Fraction(90, 100),
    Scenario.MULTI_STREAM: Fraction(99, 100),
    Scenario.SERVER: Fraction(99, 100),
}
"""The percentile that a scenario is judged by (MLPerf Inference rules); offline is judged by its throughput."""


def queries_wanted(scenario: Scenario | None) -> int:
    """Return how many queries make the scenario's percentile something else than the slowest one of all."""
    judged_at = None if scenario is None else JUDGED_AT.get(scenario)
    return MIN_INFERENCES if judged_at is None else int(1 / (1 - judged_at))


def too_few_samples(evidence: Evidence) -> Iterator[Judgement]:
    """A percentile of a handful of queries is an anecdote."""
    scenario = None if evidence.workload is None else evidence.workload.scenario
    wanted = queries_wanted(scenario)
    if evidence.inference_count < wanted:
        of = f" for a percentile of the scenario {scenario.value}" if scenario in JUDGED_AT and scenario else ""
        yield Verdict.FLAGGED, f"only {evidence.inference_count} queries were timed ({wanted} are wanted{of})"
