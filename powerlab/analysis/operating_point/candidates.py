"""Points beside their bounds: which keep them all, which may, and by how much the others miss them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from powerlab.analysis.operating_point.arrivals import collecting_ms
from powerlab.analysis.operating_point.bounds import Bound, Fit, fit_of, overshoot
from powerlab.analysis.operating_point.question import Question
from powerlab.analysis.operating_point.settling import repeats_to_settle
from powerlab.analysis.summary import PointSummary, usable_runs
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A point's figure beside one bound.

    Attributes:
        bound: the bound.
        figure: what is bounded; None where no repeat gave it. A latency includes what the first image of a batch waits
            for the last one at the arrival rate.
        fit: whether the bound is kept.
        repeats: about how many repeats may settle an open bound; None where it is not open, or no number would.
    """

    bound: Bound
    figure: Metric | None
    fit: Fit
    repeats: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A point and what is known of its bounds."""

    summary: PointSummary
    held: tuple[Held, ...]

    @property
    def kept(self) -> bool:
        """Whether every bound is kept with the whole interval."""
        return all(one.fit is Fit.KEPT for one in self.held)

    @property
    def open(self) -> bool:
        """Whether no bound is missed, and at least one is open."""
        return not self.kept and all(one.fit in {Fit.KEPT, Fit.OPEN} for one in self.held)

    def without(self, bound: Bound) -> Candidate:
        """Return the candidate as if there were no such bound."""
        return replace(self, held=tuple(one for one in self.held if one.bound != bound))


def candidates(
    summaries: Iterable[PointSummary], repeats: Mapping[Point, Sequence[Run]], question: Question
) -> tuple[Candidate, ...]:
    """Return every point beside the question's bounds, and beside the throughput that its arrival rate takes."""
    needed = question.needed_rate
    bounds = (*question.bounds, *((needed,) if needed is not None and needed not in question.bounds else ()))
    return tuple(
        Candidate(
            summary=summary,
            held=tuple(_held(summary, repeats.get(summary.point, ()), bound, question) for bound in bounds),
        )
        for summary in summaries
    )


def _held(summary: PointSummary, runs: Sequence[Run], bound: Bound, question: Question) -> Held:
    wait_ms = 0.0
    if bound.name == "p99" and question.rate_img_per_s is not None:
        wait_ms = collecting_ms(summary.point, question.rate_img_per_s)
    figure = _later(summary.metric(bound.kind.metric), wait_ms)
    by_definition = bound.kind.fp32_keeps and summary.point.workload.precision == "fp32"
    fit = Fit.KEPT if by_definition else fit_of(figure, bound)
    repeats = None
    if fit is Fit.OPEN:
        found = (_later(run.metric(bound.kind.metric), wait_ms) for run in usable_runs(runs))
        repeats = repeats_to_settle([one for one in found if one is not None], bound.limit)
    return Held(bound=bound, figure=figure, fit=fit, repeats=repeats)


def _later(figure: Metric | None, by: float) -> Metric | None:
    if figure is None or by == 0:
        return figure
    ends = [None if end is None else end + by for end in (figure.low, figure.high)]
    return replace(figure, value=figure.value + by, low=ends[0], high=ends[1])


def relative_miss(held: Held) -> float:
    """Return by what part of its limit a figure misses a bound, with the nearest end of its interval; 0 if it may not.

    A missing figure misses by more than any other.
    """
    if held.figure is None:
        return float("inf")
    if held.fit is not Fit.MISSED:
        return 0.0
    return _nearest(held.figure, held.bound) / held.bound.limit


def _nearest(figure: Metric, bound: Bound) -> float:
    ends = [end for end in (figure.value, figure.low, figure.high) if end is not None]
    return min(overshoot(end, bound) for end in ends)
