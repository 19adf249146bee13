"""The best of some points at one metric, and what it is tied with, by the one rule behind every headline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.summary import MIN_VALID, PointSummary
from powerlab.analysis.verdict import Decision, Standing, lacking, standing
from powerlab.analysis.wording import counted, repeat_commands
from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A point that is not shown to be worse than the best one.

    Attributes:
        summary: the point.
        figure: its figure.
        ratio: the best point's figure over it; None where there is none.
    """

    summary: PointSummary
    figure: Metric
    ratio: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The best point at a metric.

    Attributes:
        best: the point.
        figure: its figure.
        decision: winner, tied, or not enough data to say.
        rivals: the points that are not shown to be worse, the best first.
        beaten: how many points are shown to be worse.
        statement: the decision in words.
    """

    best: PointSummary
    figure: Metric
    decision: Decision
    rivals: tuple[Rival, ...]
    beaten: int
    statement: str


def choose(summaries: Sequence[PointSummary], repeats: Mapping[Point, Sequence[Run]], metric: str) -> Choice | None:
    """Return the best of points that do the same work and whose figures share a provenance; None without a figure."""
    sign = -1 if METRICS[metric].higher_is_better else 1
    found = [(summary, figure) for summary in summaries if (figure := summary.metric(metric)) is not None]
    if not found:
        return None
    (best, figure), *others = sorted(found, key=lambda entry: sign * entry[1].value)
    runs = [repeats[best.point], *(repeats[other.point] for other, _ in others)]
    stands = standing(runs[0], runs[1:], metric)
    return Choice(
        best=best,
        figure=figure,
        decision=stands.decision,
        rivals=tuple(
            Rival(summary=others[place][0], figure=others[place][1], ratio=stands.ratios[place])
            for place in stands.unbeaten
        ),
        beaten=sum(stands.beaten),
        statement=_statement(stands, lacking(runs, metric)),
    )


def _statement(stands: Standing, lacks: Mapping[str, int]) -> str:
    rivals, unbeaten = len(stands.beaten), len(stands.unbeaten)
    if not rivals:
        return "the only point within the bounds, so there is nothing to compare it with"
    if stands.decision is Decision.WINNER:
        return f"winner: significantly better than {counted(rivals, 'other point')}"
    if stands.decision is Decision.TIED:
        return f"tied with {unbeaten} of {counted(rivals, 'other point')}"
    if stands.missing_repeats:
        return (
            f"not enough data: a claim takes {MIN_VALID} valid runs of every point within the bounds; add "
            f"{counted(stands.missing_repeats, 'repeat')} ({repeat_commands(lacks)})"
        )
    return f"not enough data: {counted(unbeaten, 'other point')} cannot be compared with it"
