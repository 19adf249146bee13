"""The answer for points that do the same work and whose figures share a provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from powerlab.analysis.comparison import compare
from powerlab.analysis.dimensions import varying
from powerlab.analysis.operating_point.candidates import Candidate, candidates
from powerlab.analysis.operating_point.choice import Choice, choose
from powerlab.analysis.operating_point.infeasible import why_none
from powerlab.analysis.operating_point.load import LoadPoint, best_at_rates, changes
from powerlab.analysis.operating_point.question import GOALS, Question
from powerlab.analysis.operating_point.records import Answer, BoundCost, OpenPoint, RatedPoint
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Points that may be ranked together, and what is asked of them.

    Attributes:
        work: what they do, in words.
        goal: a key of :data:`GOALS`.
        provenance: of the goal's figures.
        question: the bounds and the arrival rate.
        summaries: the points as they are at the arrival rate.
        seen: their runs as they are there.
        busy: every point of that work as it was measured, without idling.
        runs: their runs as they were measured.
        aside: those that a search for the goal gave up.
    """

    work: str
    goal: str
    provenance: Provenance
    question: Question
    summaries: tuple[PointSummary, ...]
    seen: Mapping[Point, Sequence[Run]]
    busy: tuple[PointSummary, ...]
    runs: Mapping[Point, Sequence[Run]]
    aside: frozenset[Point]

    @property
    def metric(self) -> str:
        """The goal's metric."""
        return GOALS[self.goal]


def answer_of(alike: Alike) -> Answer:
    """Return the answer; one without a best point where no point surely keeps all bounds."""
    found = candidates(alike.summaries, alike.seen, alike.question)
    choice = _best(alike, found)
    totals = [run.total for one in alike.summaries for run in alike.runs[one.point] if run.total is not None]
    answer = Answer(
        work=alike.work,
        goal=alike.goal,
        metric=alike.metric,
        provenance=alike.provenance,
        scope=" or ".join(dict.fromkeys(total.scope for total in totals)),
        best=None,
        decision=None,
        statement="",
        open_points=tuple(_open_points(alike, found, choice)),
    )
    if choice is None:
        named = varying([summary.point for summary in alike.summaries])
        return replace(answer, statement=why_none(found, named))
    loads = tuple(_load_points(alike, choice))
    return replace(
        answer,
        best=RatedPoint(point_id=choice.best.point.id, point=choice.best.point, figure=choice.figure),
        decision=choice.decision,
        statement=choice.statement,
        held=next(one.held for one in found if one.summary is choice.best),
        tied=tuple(
            RatedPoint(point_id=one.summary.point.id, point=one.summary.point, figure=one.figure, ratio=one.ratio)
            for one in choice.rivals
        ),
        beaten=choice.beaten,
        costs=tuple(_costs(alike, found, choice)),
        rates=best_at_rates(loads, alike.question),
        changes=changes(loads),
    )


def _best(alike: Alike, found: Sequence[Candidate]) -> Choice | None:
    return choose(_compared(alike, [one.summary for one in found if one.kept]), alike.seen, alike.metric)


def _compared(alike: Alike, kept: Sequence[PointSummary]) -> Sequence[PointSummary]:
    """Return the points to compare, of those that keep the bounds.

    What a search gave up is unlikely to be better than the best that it did not, and so need not be compared where that
    one keeps the bounds. Where it does not, every point may be the best that does.
    """
    figures = [
        (figure.value, summary)
        for summary in alike.summaries
        if summary.point not in alike.aside and (figure := summary.metric(alike.metric)) is not None
    ]
    if not figures:
        return kept
    best = max if METRICS[alike.metric].higher_is_better else min
    _, first = best(figures, key=lambda entry: entry[0])
    return [one for one in kept if one.point not in alike.aside] if first in kept else kept


def _costs(alike: Alike, found: Sequence[Candidate], choice: Choice) -> Iterator[BoundCost]:
    for bound in alike.question.bounds:
        freed = _best(alike, [one.without(bound) for one in found])
        same = freed is None or freed.best.point == choice.best.point
        without = None if freed is None or same else _against(alike, choice, freed.best, freed.figure)
        yield BoundCost(bound=bound, without=without)


def _open_points(alike: Alike, found: Sequence[Candidate], choice: Choice | None) -> Iterator[OpenPoint]:
    """Yield points whose bounds are open, the best first; beside a chosen point, only those with a better figure."""
    sign = -1 if METRICS[alike.metric].higher_is_better else 1
    figures = [(one, figure) for one in found if one.open and (figure := one.summary.metric(alike.metric)) is not None]
    for one, figure in sorted(figures, key=lambda entry: sign * entry[1].value):
        if choice is None:
            rated = RatedPoint(point_id=one.summary.point.id, point=one.summary.point, figure=figure)
        elif sign * figure.value < sign * choice.figure.value:
            rated = _against(alike, choice, one.summary, figure)
        else:
            return
        yield OpenPoint(rated=rated, held=one.held)


def _load_points(alike: Alike, choice: Choice) -> Iterator[LoadPoint]:
    """Yield the points that keep the bounds at some arrival rate, of the provenance of the chosen point's power."""
    power = choice.best.metric("idle_power_w")
    for summary in alike.busy:
        idle = summary.metric("idle_power_w")
        if power is None or idle is None or idle.provenance is not power.provenance:
            continue
        load = LoadPoint.of(summary, alike.runs[summary.point], alike.question)
        if load is not None:
            yield load


def _against(alike: Alike, choice: Choice, other: PointSummary, figure: Metric) -> RatedPoint:
    """Return a point with the ratio of the chosen point's figure to its own."""
    ratio = compare(alike.seen[choice.best.point], alike.seen[other.point], alike.metric)
    return RatedPoint(point_id=other.point.id, point=other.point, figure=figure, ratio=ratio)
