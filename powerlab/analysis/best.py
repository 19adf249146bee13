"""Which point is best at what, and whether that is a winner, a tie, or not enough data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from powerlab.analysis.comparison import Ratio, compare, margin
from powerlab.analysis.dimensions import varying
from powerlab.analysis.summary import MIN_VALID, PointSummary
from powerlab.analysis.wording import lead_words
from powerlab.domain.model_name import short
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Preparation, Scenario

GOALS: dict[str, str] = {
    "latency": "latency_p50_ms",
    "throughput": "throughput_img_per_s",
    "efficiency": "efficiency_img_per_s_per_w",
}
"""What a user may want to be best at, and the metric that says so."""


class Decision(StrEnum):
    """What a headline may claim of the best point."""

    WINNER = "winner"
    TIED = "tied"
    NOT_ENOUGH_DATA = "not enough data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best point at one thing.

    Attributes:
        goal: a key of :data:`GOALS`.
        summary: the best point.
        metric: its figure.
        runner_up: the next best point; None where there is only one.
        ratio: the best point's figure over the next best's; None where there is none to compare with.
        decision: winner, tied with the next best, or not enough data to say.
        statement: the decision in one sentence.
    """

    goal: str
    summary: PointSummary
    metric: Metric
    runner_up: PointSummary | None
    ratio: Ratio | None
    decision: Decision
    statement: str

    @property
    def separated(self) -> bool | None:
        """Whether the 95 % interval of the ratio says that it is better; None where there is no interval."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None:
            return None
        return self.ratio.low > 1 if METRICS[self.metric.name].higher_is_better else self.ratio.high < 1


def best_points(summaries: Sequence[PointSummary], runs: Sequence[Run] = ()) -> tuple[Best, ...]:
    """Return the best point for each goal and each work; one for each provenance where figures have several.

    Points of other models or scenarios do other work (:func:`work_of`), so they are never ranked together.

    Args:
        summaries: the points, all of one device.
        runs: the runs that they summarise, those of :func:`contenders` at least; without them nothing is said of how
            sure a choice is.
    """
    repeats: dict[Point, list[Run]] = {}
    for run in runs:
        repeats.setdefault(run.point, []).append(run)
    return tuple(_best(goal, ranked, repeats) for goal, ranked in _rankings(summaries))


def contenders(summaries: Sequence[PointSummary]) -> frozenset[Point]:
    """Return the points that :func:`best_points` names, the best and the next best, whose runs it compares."""
    return frozenset(summary.point for _, ranked in _rankings(summaries) for summary, _ in ranked[:2])


def _rankings(summaries: Sequence[PointSummary]) -> Iterator[tuple[str, list[tuple[PointSummary, Metric]]]]:
    """Yield goals with what is ranked by them, for each work and each provenance that has such figures."""
    by_work: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        by_work.setdefault(work_of(summary.point), []).append(summary)
    for alike, (goal, name), provenance in product(by_work.values(), GOALS.items(), Provenance):
        ranked = _ranked(alike, name, provenance)
        if ranked:
            yield goal, ranked


def work_of(point: Point) -> str:
    """Return what a point's device is asked to do, in words: the model and how it is fed."""
    load = point.workload
    parts = [short(load.model)]
    if load.scenario is not Scenario.SINGLE_STREAM:
        parts.append(load.scenario.value)
    if load.latency_bound_ms:
        parts.append(f"within {load.latency_bound_ms:g} ms")
    if load.preparation is not Preparation.OUTSIDE:
        parts.append("preparation included")
    return ", ".join(parts)


def pareto_front(summaries: Sequence[PointSummary]) -> tuple[PointSummary, ...]:
    """Return the points that no other point beats in both img/s and W, by rising power.

    Points without power are left out; points are compared only with points of their own provenance.
    """
    front = []
    for provenance in Provenance:
        fastest = 0.0
        for summary, power in _ranked(summaries, "power_w", provenance):
            throughput = summary.metric("throughput_img_per_s")
            if throughput is not None and throughput.value > fastest:
                fastest = throughput.value
                front.append((power.value, summary))
    return tuple(summary for _, summary in sorted(front, key=lambda entry: entry[0]))


def _ranked(summaries: Sequence[PointSummary], name: str, provenance: Provenance) -> list[tuple[PointSummary, Metric]]:
    """Return the points that have a metric of one provenance, the best first; of equals, the one of fewest threads."""
    found = [
        (summary, metric)
        for summary in summaries
        if (metric := summary.metric(name)) is not None and metric.provenance is provenance
    ]
    throughputs = {id(summary): _throughput(summary) for summary, _ in found}
    sign = -1.0 if METRICS[name].higher_is_better else 1.0

    def rank(entry: tuple[PointSummary, Metric]) -> tuple[float, float, int, str]:
        summary, metric = entry
        return sign * metric.value, -throughputs[id(summary)], summary.point.threads, summary.point.id

    return sorted(found, key=rank)


def _throughput(summary: PointSummary) -> float:
    metric = summary.metric("throughput_img_per_s")
    return 0.0 if metric is None else metric.value


def _best(goal: str, ranked: list[tuple[PointSummary, Metric]], repeats: Mapping[Point, Sequence[Run]]) -> Best:
    summary, metric = ranked[0]
    runner_up = ranked[1][0] if len(ranked) > 1 else None
    ratio = None
    if runner_up is not None:
        ratio = compare(repeats.get(summary.point, ()), repeats.get(runner_up.point, ()), metric.name)
    decision, statement = _decided(goal, summary, runner_up, ratio)
    return Best(
        goal=goal,
        summary=summary,
        metric=metric,
        runner_up=runner_up,
        ratio=ratio,
        decision=decision,
        statement=statement,
    )


def _decided(
    goal: str, summary: PointSummary, runner_up: PointSummary | None, ratio: Ratio | None
) -> tuple[Decision, str]:
    """Return what may be claimed, and in which words.

    A point is called a winner only where it and the next best have two valid runs each: flagged runs may stand in for
    valid ones in a figure, but they never make a choice surer.
    """
    if runner_up is None:
        return Decision.NOT_ENOUGH_DATA, "the only point with this figure: nothing to compare it with"
    named = varying([summary.point, runner_up.point])
    for one in (summary, runner_up):
        if one.valid_count < MIN_VALID:
            return Decision.NOT_ENOUGH_DATA, (
                f"not enough data: {one.valid_count} of {one.run_count} runs of {named(one.point)} are valid, and a "
                f"choice takes {MIN_VALID}; add repeats"
            )
    statement = lead_words(ratio, goal, named(runner_up.point))
    low = None if ratio is None else margin(ratio)[1]
    if low is None:
        return Decision.NOT_ENOUGH_DATA, statement
    return (Decision.WINNER if low > 0 else Decision.TIED), statement
