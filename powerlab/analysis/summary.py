"""The repeats of a point made into one figure each, with an interval that holds both kinds of scatter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from powerlab.domain.quantity import Metric
from powerlab.domain.run import Finding, Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSummary:
    """What the repeats of one point say together.

    Attributes:
        point: what was run.
        run_count: repeats that were tried.
        valid_count: repeats whose verdict is valid.
        metrics: one figure for each metric that the usable repeats have.
        findings: what the validity rules said about the repeats, each sentence once.
    """

    point: Point
    run_count: int
    valid_count: int
    metrics: tuple[Metric, ...]
    findings: tuple[Finding, ...]

    def metric(self, name: str) -> Metric | None:
        """Return the metric of that name, or None where no repeat gave it."""
        return next((metric for metric in self.metrics if metric.name == name), None)


def summarise(runs: Iterable[Run]) -> tuple[PointSummary, ...]:
    """Return one summary a point, in the order in which the points first appear."""
    raise NotImplementedError
