"""The repeats of a point made into one figure each, with an interval that holds both kinds of scatter.

The figure is the median of the usable repeats. Its 95 % interval adds two things that do not know of each other as the
root of the sum of squares: the scatter between the repeats (Student's t on their mean) and what a single run cannot
know about itself: the interval of the typical run, the one whose interval is the median in width. A sensor's gain error
does not shrink with repeats. The point's budget is that run's, with a line for the scatter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from powerlab.domain.budget import INVERTED, MAY_BE_NEGATIVE, REPEATS, half_width, of_metric
from powerlab.domain.quantity import METRICS, POWER_FIGURES, Metric
from powerlab.domain.run import Contribution, EffectKind, Finding, Run, Verdict
from powerlab.domain.statistics import NORMAL_95, mean_half_width
from powerlab.domain.sweep import SEARCHED, Point
from powerlab.domain.validity import ENERGY_RULES

MIXED_RULE = "mixed-provenance"
MIN_VALID = 3
"""Valid runs of a point that a claim about it takes."""
_SHOW_SCATTER = 2
METHOD = 2
"""Which way of summarising and of answering this is; what was kept by another one is worked out anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSummary:
    """What the repeats of one point say together.

    Attributes:
        point: what was run.
        run_count: repeats that were tried.
        valid_count: repeats whose verdict is valid.
        metrics: one figure for each metric that the usable repeats have.
        findings: what the validity rules said about the repeats, each sentence once.
        budget: what the intervals of power and energy are made of: the typical run's lines, and the repeats' scatter.
    """

    point: Point
    run_count: int
    valid_count: int
    metrics: tuple[Metric, ...]
    findings: tuple[Finding, ...]
    budget: tuple[Contribution, ...] = ()

    def metric(self, name: str) -> Metric | None:
        """Return the metric of that name, or None where no repeat gave it."""
        return next((metric for metric in self.metrics if metric.name == name), None)


def summarise(runs: Iterable[Run]) -> tuple[PointSummary, ...]:
    """Return one summary a point, in the order in which the points first appear."""
    by_point: dict[Point, list[Run]] = {}
    for run in runs:
        by_point.setdefault(run.point, []).append(run)
    return tuple(_summarise_point(repeats) for repeats in by_point.values())


def usable_runs(runs: Sequence[Run]) -> list[Run]:
    """Return the runs whose figures count.

    These are the valid ones; where fewer than two are valid, the flagged ones with them, for one run has no scatter;
    without either, the runs that only their power made void: their latency and throughput still hold, and their power
    figures were left out.
    """
    valid = [run for run in runs if run.verdict is Verdict.VALID]
    if len(valid) >= _SHOW_SCATTER:
        return valid
    usable = [run for run in runs if run.verdict in {Verdict.VALID, Verdict.FLAGGED}]
    return usable or [run for run in runs if run.verdict is Verdict.VOID and _void_in_energy_alone(run)]


def searched_figures(run: Run) -> dict[str, float]:
    """Return what a search learns from a run: those of :data:`~powerlab.domain.sweep.SEARCHED` that count."""
    return {
        metric.name: metric.value for one in usable_runs([run]) for metric in one.metrics if metric.name in SEARCHED
    }


def sound_runs(runs: Sequence[Run], name: str) -> list[Run]:
    """Return the runs whose figure a claim may rest on: the valid ones that have it.

    For figures without power that includes runs whose findings are about their power alone.
    """
    judged = ENERGY_RULES if name not in POWER_FIGURES else frozenset()
    return [
        run
        for run in runs
        if run.metric(name) is not None
        and (run.verdict is Verdict.VALID or (run.findings and all(one.rule in judged for one in run.findings)))
    ]


def _void_in_energy_alone(run: Run) -> bool:
    return all(finding.rule in ENERGY_RULES for finding in run.findings if finding.verdict is Verdict.VOID)


def _summarise_point(runs: list[Run]) -> PointSummary:
    findings = [finding for run in runs for finding in run.findings]
    metrics: list[Metric] = []
    budget: list[Contribution] = []
    usable = [(run, {metric.name: metric for metric in run.metrics}) for run in usable_runs(runs)]
    for name in METRICS:
        found = [(by_name[name], run) for run, by_name in usable if name in by_name]
        figures = [figure for figure, _ in found]
        provenances = {figure.provenance for figure in figures}
        if len(provenances) > 1:
            words = " and ".join(sorted(provenances))
            detail = f"{METRICS[name].title.lower()}: the repeats are {words}, which cannot be put together"
            findings.append(Finding(rule=MIXED_RULE, verdict=Verdict.VOID, detail=detail))
        elif figures:
            lines = _budget(name, found)
            metrics.append(combine(figures, lines))
            budget += lines
    return PointSummary(
        point=runs[0].point,
        run_count=len(runs),
        valid_count=sum(run.verdict is Verdict.VALID for run in runs),
        metrics=tuple(metrics),
        findings=tuple(dict.fromkeys(findings)),
        budget=tuple(budget),
    )


def _budget(name: str, found: Sequence[tuple[Metric, Run]]) -> Sequence[Contribution]:
    """Return the lines of one figure; none where its runs have none.

    The scatter's standard uncertainty is that of a normal distribution with the same 95 % interval: few repeats make it
    larger by Student's t, so that all lines are combined alike.
    """
    figures = [figure for figure, _ in found]
    typical = typical_figure(figures)
    lines = [line for figure, run in found if figure is typical for line in of_metric(run.budget, name)]
    between = mean_half_width([figure.value for figure in figures])
    if not lines or not between:
        return lines
    scatter = between / NORMAL_95
    return [
        *lines,
        Contribution(metric=name, origin=REPEATS, effect="scatter", kind=EffectKind.A, standard_uncertainty=scatter),
    ]


def typical_figure(figures: Sequence[Metric]) -> Metric | None:
    """Return the figure whose interval is the median in width, of two the wider one; None where none has one."""
    widths = sorted(
        (figure.high - figure.low, index)
        for index, figure in enumerate(figures)
        if figure.low is not None and figure.high is not None
    )
    return figures[widths[len(widths) // 2][1]] if widths else None


def combine(figures: Sequence[Metric], lines: Sequence[Contribution] = ()) -> Metric:
    """Return the median of one metric's repeats, which share a provenance, with its 95 % interval.

    Where there is a budget, its lines make the interval, as those of a run do; that of an inverse has two sides, each
    of which is put together with the scatter by itself. Without a second repeat there is no scatter between repeats to
    see, and so no interval.
    """
    first = figures[0]
    value = median(figure.value for figure in figures)
    between = mean_half_width([figure.value for figure in figures])
    if between is None:
        return Metric(name=first.name, value=value, provenance=first.provenance)
    typical = typical_figure(figures)
    below = above = 0.0
    if typical is not None and typical.low is not None and typical.high is not None:
        below, above = typical.value - typical.low, typical.high - typical.value
    below, above = math.hypot(between, below), math.hypot(between, above)
    if lines and first.name not in INVERTED:
        below = above = half_width(lines)
    low, high = value - below, value + above
    if first.name not in MAY_BE_NEGATIVE:
        low = max(0.0, low)
    return Metric(name=first.name, value=value, low=low, high=high, provenance=first.provenance)
