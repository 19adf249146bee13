"""Which point is best at what, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best point at one thing.

    Attributes:
        goal: ``latency``, ``throughput`` or ``efficiency``.
        summary: the best point.
        metric: its figure.
        runner_up: the next best point; None where there is only one.
        separated: whether the two 95 % intervals do not overlap; None where either is missing.
        statement: one sentence on how sure the choice is.
    """

    goal: str
    summary: PointSummary
    metric: Metric
    runner_up: PointSummary | None
    separated: bool | None
    statement: str


def best_points(summaries: Sequence[PointSummary]) -> tuple[Best, ...]:
    """Return the best point for each goal; one for each provenance where a goal's figures have several."""
    raise NotImplementedError


def pareto_front(summaries: Sequence[PointSummary]) -> tuple[PointSummary, ...]:
    """Return the points that no other point beats in both img/s and W, by rising power."""
    raise NotImplementedError
