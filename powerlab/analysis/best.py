"""Which point is best at what, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, Metric, Provenance

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
    found = []
    for goal, name in GOALS.items():
        for provenance in Provenance:
            ranked = _ranked(summaries, name, provenance)
            if ranked:
                found.append(_best(goal, ranked))
    return tuple(found)


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
    """Return the points that have a metric of one provenance, the best first; of equals, the one seen first."""
    found = [
        (summary, metric)
        for summary in summaries
        if (metric := summary.metric(name)) is not None and metric.provenance is provenance
    ]
    throughputs = {id(summary): _throughput(summary) for summary, _ in found}
    sign = -1.0 if METRICS[name].higher_is_better else 1.0
    return sorted(found, key=lambda entry: (sign * entry[1].value, -throughputs[id(entry[0])]))


def _throughput(summary: PointSummary) -> float:
    metric = summary.metric("throughput_img_per_s")
    return 0.0 if metric is None else metric.value


def _best(goal: str, ranked: list[tuple[PointSummary, Metric]]) -> Best:
    summary, metric = ranked[0]
    if len(ranked) == 1:
        statement = "it is the only point with this figure, so there is nothing to compare it with"
        return Best(goal=goal, summary=summary, metric=metric, runner_up=None, separated=None, statement=statement)
    runner_up, other = ranked[1]
    separated = _separated(metric, other)
    return Best(
        goal=goal,
        summary=summary,
        metric=metric,
        runner_up=runner_up,
        separated=separated,
        statement=_statement(metric, other, separated),
    )


def _separated(one: Metric, other: Metric) -> bool | None:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return one.high < other.low or other.high < one.low


def _statement(best: Metric, other: Metric, separated: bool | None) -> str:
    larger = max(abs(best.value), abs(other.value))
    margin = abs(best.value - other.value) / larger if larger else 0.0
    lead = f"it leads the next best by {margin:.1%}"
    if separated is None:
        return f"{lead}, and how sure that is cannot be said, because an interval is missing"
    if separated:
        return f"{lead}, and their 95 % intervals do not overlap"
    return f"{lead}, but their 95 % intervals overlap: either may be the better one"
