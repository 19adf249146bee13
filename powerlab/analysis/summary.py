"""The repeats of a point made into one figure each, with an interval that holds both kinds of scatter.

The figure is the median of the usable repeats. Its 95 % interval adds two things that do not know of each other as the
root of the sum of squares: the scatter between the repeats (Student's t on their mean) and what a single run cannot
know about itself (the median of the runs' own half-widths: a sensor's gain error does not shrink with repeats).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.statistics import mean_half_width
from powerlab.domain.sweep import Point
from powerlab.domain.validity import ENERGY_RULES

MIXED_RULE = "mixed-provenance"
MIN_VALID = 2


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
    by_point: dict[str, list[Run]] = {}
    for run in runs:
        by_point.setdefault(run.point.id, []).append(run)
    return tuple(_summarise_point(repeats) for repeats in by_point.values())


def usable_runs(runs: Sequence[Run]) -> list[Run]:
    """Return the runs whose figures count.

    These are the valid ones; where fewer than two are valid, the flagged ones with them, for one run has no scatter;
    without either, the runs that only their power made void: their latency and throughput still hold, and their power
    figures were left out.
    """
    valid = [run for run in runs if run.verdict is Verdict.VALID]
    if len(valid) >= MIN_VALID:
        return valid
    usable = [run for run in runs if run.verdict in {Verdict.VALID, Verdict.FLAGGED}]
    return usable or [run for run in runs if run.verdict is Verdict.VOID and _void_in_energy_alone(run)]


def _void_in_energy_alone(run: Run) -> bool:
    return all(finding.rule in ENERGY_RULES for finding in run.findings if finding.verdict is Verdict.VOID)


def _summarise_point(runs: list[Run]) -> PointSummary:
    findings = [finding for run in runs for finding in run.findings]
    metrics = []
    usable = usable_runs(runs)
    for name in METRICS:
        figures = [metric for run in usable if (metric := run.metric(name)) is not None]
        provenances = {figure.provenance for figure in figures}
        if len(provenances) > 1:
            words = " and ".join(sorted(provenances))
            detail = f"{METRICS[name].title.lower()}: the repeats are {words}, which cannot be put together"
            findings.append(Finding(rule=MIXED_RULE, verdict=Verdict.VOID, detail=detail))
        elif figures:
            metrics.append(combine(figures))
    return PointSummary(
        point=runs[0].point,
        run_count=len(runs),
        valid_count=sum(run.verdict is Verdict.VALID for run in runs),
        metrics=tuple(metrics),
        findings=tuple(dict.fromkeys(findings)),
    )


def combine(figures: Sequence[Metric]) -> Metric:
    """Return the median of one metric's repeats, which share a provenance, with its 95 % interval.

    Without a second repeat there is no scatter between repeats to see, and so no interval.
    """
    value = median(figure.value for figure in figures)
    between = mean_half_width([figure.value for figure in figures])
    if between is None:
        return Metric(name=figures[0].name, value=value, provenance=figures[0].provenance)
    below = [figure.value - figure.low for figure in figures if figure.low is not None]
    above = [figure.high - figure.value for figure in figures if figure.high is not None]
    low = value - math.hypot(between, median(below) if below else 0.0)
    high = value + math.hypot(between, median(above) if above else 0.0)
    if figures[0].name != "energy_above_idle_per_image_j":
        low = max(0.0, low)  # no other figure can be negative
    return Metric(name=figures[0].name, value=value, low=low, high=high, provenance=figures[0].provenance)
