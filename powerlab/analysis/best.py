"""Which point is best at what, and whether that is a winner, a tie, or not enough data (:mod:`.verdict`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.dimensions import varying
from powerlab.analysis.summary import MIN_VALID, PointSummary, sound_runs
from powerlab.analysis.verdict import Decision, Standing, standing
from powerlab.analysis.wording import counted, lead_words
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best point at one thing.

    Attributes:
        goal: a key of :data:`GOALS`.
        summary: the best point.
        metric: its figure.
        runner_up: the next best point; None where there is only one.
        ratio: the best point's figure over the next best's; None where there is none to compare with.
        decision: winner over every other point, tied with some of them, or not enough data to say.
        statement: the decision in one sentence.
        missing_repeats: valid repeats that are missing for a decision; 0 where repeats would not help or none are.
    """

    goal: str
    summary: PointSummary
    metric: Metric
    runner_up: PointSummary | None
    ratio: Ratio | None
    decision: Decision
    statement: str
    missing_repeats: int = 0

    @property
    def separated(self) -> bool | None:
        """Whether it is shown to be better than every other point; None where there is not enough data."""
        return None if self.decision is Decision.NOT_ENOUGH_DATA else self.decision is Decision.WINNER


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
    """Return the points whose runs :func:`best_points` compares: all that have a figure and a rival."""
    return frozenset(summary.point for _, ranked in _rankings(summaries) if len(ranked) > 1 for summary, _ in ranked)


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
    if load.trains:
        parts.append(f"trained by {load.optimizer}")
    if load.nodes > 1:
        parts.append(f"on {load.nodes} devices")
    if load.scenario is not Scenario.SINGLE_STREAM:
        parts.append(load.scenario.value)
    if load.latency_bound_ms:
        parts.append(f"within {load.latency_bound_ms:g} ms")
    if load.preparation is not Preparation.OUTSIDE:
        parts.append("preparation included")
    return ", ".join(parts)


def pareto_front(
    summaries: Sequence[PointSummary], cost: str = "power_w", gain: str = "throughput_img_per_s"
) -> tuple[PointSummary, ...]:
    """Return the points that no other point beats in both figures, by rising cost.

    Points without both are left out; points are compared only with points of their own provenance.

    Args:
        summaries: the points, all of one device and of the same work.
        cost: a metric of which less is better, such as W.
        gain: another one, such as img/s; whether more or less of it is better is up to the metric.
    """
    front = []
    sign = 1.0 if METRICS[gain].higher_is_better else -1.0
    for provenance in Provenance:
        best = 0.0 if sign > 0 else -math.inf
        found = [
            (figure.value, -sign * other.value, summary)
            for summary, figure in _ranked(summaries, cost, provenance)
            if (other := summary.metric(gain)) is not None
        ]
        for value, loss, summary in sorted(found, key=lambda entry: entry[:2]):
            if -loss > best:
                best = -loss
                front.append((value, summary))
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
    (summary, metric), *others = ranked
    rivals = [rival for rival, _ in others]
    stands = standing(repeats.get(summary.point, ()), [repeats.get(rival.point, ()) for rival in rivals], metric.name)
    return Best(
        goal=goal,
        summary=summary,
        metric=metric,
        runner_up=rivals[0] if rivals else None,
        ratio=stands.ratios[0] if rivals else None,
        decision=stands.decision,
        statement=_statement(goal, summary, rivals, stands) or _lack(metric.name, (summary, *rivals), repeats, stands),
        missing_repeats=stands.missing_repeats if rivals else 0,
    )


def _statement(goal: str, best: PointSummary, rivals: Sequence[PointSummary], stands: Standing) -> str:
    """Return what may be claimed in words; empty where runs are missing."""
    if not rivals:
        return "the only point with this figure: nothing to compare it with"
    if stands.missing_repeats:
        return ""
    named = varying([best.point, *(rival.point for rival in rivals)])
    place = stands.unbeaten[0] if stands.unbeaten else 0
    return lead_words(
        stands.ratios[place],
        goal,
        named(rivals[place].point),
        claimed=stands.beaten[place],
        rivals=len(rivals),
        unbeaten=len(stands.unbeaten),
    )


def _lack(name: str, points: Sequence[PointSummary], repeats: Mapping[Point, Sequence[Run]], stands: Standing) -> str:
    """Return which point has too few valid runs, and what to do."""
    counts = [(point, len(sound_runs(repeats.get(point.point, ()), name))) for point in points]
    short = [(point, count) for point, count in counts if count < MIN_VALID]
    point, count = short[0]
    named = varying([one.point for one in points])
    others = f"; {counted(len(short) - 1, 'other point')} as well" if len(short) > 1 else ""
    first = "mend what flags them all, then " if count == 0 and point.run_count >= MIN_VALID else ""
    return (
        f"not enough data: {count} of {point.run_count} runs of {named(point.point)} are valid, and a claim takes "
        f"{MIN_VALID}{others}; {first}add {counted(stands.missing_repeats, 'repeat')}"
    )
