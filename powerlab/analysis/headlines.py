"""The best points as every program may read them: what :mod:`.best` says, without the runs behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.analysis.best import best_points
from powerlab.analysis.comparison import Ratio
from powerlab.analysis.summary import PointSummary
from powerlab.analysis.verdict import Decision
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The best point at one thing, and what may be claimed of it.

    Attributes:
        goal: ``latency``, ``throughput`` or ``efficiency``.
        point_id: the best point.
        metric: its figure.
        runner_up: the next best point; None where there is only one.
        ratio: the best point's figure over the next best's; None where there is none.
        separated: whether it is shown to be better than every other point; None where there is not enough data.
        decision: winner, tied, or not enough data.
        statement: the decision in one sentence.
        missing_repeats: valid repeats that are missing for a decision.
    """

    goal: str
    point_id: str
    metric: Metric
    runner_up: str | None
    ratio: Ratio | None
    separated: bool | None
    decision: Decision
    statement: str
    missing_repeats: int


def headlines(summaries: Sequence[PointSummary], runs: Sequence[Run]) -> tuple[Headline, ...]:
    """Return the best point for each goal and each work, with what may be claimed; see :func:`best_points`."""
    return tuple(
        Headline(
            goal=best.goal,
            point_id=best.summary.point.id,
            metric=best.metric,
            runner_up=None if best.runner_up is None else best.runner_up.point.id,
            ratio=best.ratio,
            separated=best.separated,
            decision=best.decision,
            statement=best.statement,
            missing_repeats=best.missing_repeats,
        )
        for best in best_points(summaries, runs)
    )
