"""How precisely a point's efficiency is known, and what ``--until`` says about it in the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.summary import combine, summarise, typical_figure, usable_runs
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan

UNTIL_METRIC = "efficiency_img_per_s_per_w"
_MOST_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How precisely a point is known.

    Attributes:
        percent: how far the 95 % interval of its img/s/W reaches, to the wider side; infinite without an interval.
        least_percent: what is left of that however often the point is repeated: what a single run cannot know about
            itself, its sensors' errors above all.
    """

    percent: float
    least_percent: float


def precision(runs: Sequence[Run]) -> Precision | None:
    """Return how precisely a point's repeats know its img/s/W; None where no usable one has that figure."""
    figures = [figure for run in usable_runs(runs) if (figure := run.metric(UNTIL_METRIC)) is not None]
    if not figures or len({figure.provenance for figure in figures}) > 1:
        return None
    typical = typical_figure(figures)
    return Precision(
        percent=reach_percent(combine(figures)),
        # A run without an interval had an energy that may be 0: no repeat fixes that.
        least_percent=math.inf if typical is None else reach_percent(typical),
    )


def reach_percent(figure: Metric) -> float:
    """Return how far a figure's 95 % interval reaches, to the wider side, in % of it; infinite without an interval."""
    if figure.low is None or figure.high is None or figure.value <= 0:
        return math.inf
    return 100 * max(figure.value - figure.low, figure.high - figure.value) / figure.value


def until_notes(runs: Sequence[Run], plan: SweepPlan) -> list[str]:
    """Return what became of ``--until``: nothing where it was not asked for, else sentences."""
    if plan.until_percent == 0:
        return []
    wanted = f"±{plan.until_percent:g} %"
    known = {
        summary.point.id: precision([run for run in runs if run.point.id == summary.point.id])
        for summary in summarise(runs)
    }
    reached = [key for key, found in known.items() if found is not None and found.percent <= plan.until_percent]
    lines = [f"The img/s/W of {len(reached)} of {len(known)} points is known to {wanted}."]
    points = {run.point.id: run.point for run in runs}
    for key, found in known.items():
        if key in reached:
            continue
        repeats = sum(run.point.id == key for run in runs)
        lines.append(f"{in_words(points[key])}: {_why(found, repeats, plan)}.")
    more = len(lines) - 1 - _MOST_SENTENCES
    return (
        [*lines[: _MOST_SENTENCES + 1], f"{more} more points are not known to {wanted} either."] if more > 0 else lines
    )


def _why(found: Precision | None, repeats: int, plan: SweepPlan) -> str:
    if found is None:
        return f"no usable run of {repeats} has the figure"
    if math.isinf(found.percent):
        return f"{repeats} repeats give it no interval"
    known = f"known to ±{percent_text(found.percent)} % after {repeats} repeats"
    if found.least_percent > plan.until_percent:
        left = percent_text(found.least_percent)
        return f"{known}; what its sensors leave unknown is ±{left} %, which no repeat takes away"
    return f"{known}, and a point has at most {plan.most_repeats}" if repeats >= plan.most_repeats else known


def percent_text(percent: float) -> str:
    """Return a percentage in two digits, or in whole ones."""
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"
