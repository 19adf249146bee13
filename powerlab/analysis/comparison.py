"""One point's figure over another's, with what both share left out of the interval.

The ratio is computed on logarithms, where errors are relative and a ratio is a difference. Its 95 % interval adds, as
the root of the sum of squares, the scatter of the repeats' own ratios (Student's t, widened by :data:`CARE`; paired by
repeat within a sweep, because every repeat is a block that holds all points) and what no repeat can show: the
systematic lines of both budgets. An error that one rail of one device makes in both points moves both figures
together, so of it only the difference of its relative sizes is left: nothing of a gain, and of an offset what two
loads of different watts leave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, median, variance

from powerlab.analysis.summary import MIN_VALID, sound_runs, usable_runs
from powerlab.domain.budget import combined, of_metric
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Run
from powerlab.domain.statistics import NORMAL_95
from powerlab.domain.students_t import two_sided_level, two_sided_quantile

SHARED_EFFECTS = frozenset({"gain", "offset"})
"""Errors of a sensor itself: the same at every load, and so in both points of a ratio."""

CARE = 2.0
"""Error levels of scatter are stated this many times as large as Student's t has them: the scatter of real runs is not
normal, and in random labels of the same point (bench/claims/false_claims.py) his own level is reached or passed."""

LEVEL = 0.05
"""Claims are made at this error level: 1 minus the coverage of the intervals."""

_OF_POWER = frozenset(
    {
        "power_w",
        "idle_power_w",
        "energy_per_image_j",
        "energy_above_idle_per_image_j",
        "efficiency_img_per_s_per_w",
    }
)
"""Figures with a sensor behind them; the others come from a clock, which is exact beside their scatter."""
WITHOUT_RATIO = frozenset({"°C", "%"})
"""Units whose figures have no ratio that says anything."""
_ROUNDING = 1e-9
_HALVINGS = 40
_FURTHEST_T = 1e9
_FURTHEST_LOG = 690.0
_LEAST_LEVEL = 1e-12
_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One point's figure over another's.

    Attributes:
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        value: the geometric mean of the repeats' ratios.
        low: lower end of the 95 % interval; None where fewer than :data:`MIN_VALID` valid repeats of both show their
            scatter, for then nothing may be claimed.
        high: upper end of the interval; None together with ``low``.
        level: the error level at which the interval would just reach 1; None where there is no interval.
        provenance: what both figures are.
        repeat_count: pairs of repeats, or the repeats of the point that has fewer; valid ones, where there is an
            interval.
        paired: whether repeats were paired, as within one sweep.
    """

    metric: str
    value: float
    low: float | None
    high: float | None
    level: float | None
    provenance: Provenance
    repeat_count: int
    paired: bool

    @property
    def differs(self) -> bool | None:
        """Whether the 95 % interval excludes 1; None where there is no interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 1 or self.high < 1


@dataclass(frozen=True, slots=True)
class _Scatter:
    """Mean difference of logarithms, its standard error, and the degrees of freedom of that."""

    mean: float
    error: float
    degrees: int


def compare(ones: Sequence[Run], others: Sequence[Run], name: str, *, one_device: bool = True) -> Ratio | None:
    """Return the first point's figure over the second's.

    Args:
        ones: the runs of one point.
        others: the runs of another, or of the same one in another sweep.
        name: the metric.
        one_device: whether one device made both, so that its rails' own errors are in both.

    Returns:
        The ratio; None where there is none: a point has no usable figure above 0, the unit has no ratios, or the two
        are of different provenance and can only stand side by side.
    """
    if METRICS[name].unit in WITHOUT_RATIO:
        return None
    one, other = _figures(ones, name), _figures(others, name)
    provenances = {figure.metric.provenance for figure in (*one, *other)}
    if not one or not other or len(provenances) > 1 or min(figure.metric.value for figure in (*one, *other)) <= 0:
        return None
    provenance = provenances.pop()
    sound = all(len(sound_runs(runs, name)) >= MIN_VALID for runs in (ones, others))
    pairs = _pairs(one, other)
    paired = len(pairs) >= MIN_VALID
    scatter = None
    if sound:
        scatter = _scatter_of_pairs(pairs) if paired else _scatter_of_both(one, other)
    if scatter is None:
        mean = fmean(figure.logarithm for figure in one) - fmean(figure.logarithm for figure in other)
        low = high = level = None
    else:
        # A model's error is not the same at every load, as a sensor's is.
        shared = one_device and provenance is not Provenance.ESTIMATED
        own = _systematic(one, other, shared=shared)
        half = math.hypot(two_sided_quantile(LEVEL / CARE, scatter.degrees) * scatter.error, NORMAL_95 * own)
        mean, low, high = scatter.mean, _exp(scatter.mean - half), _exp(scatter.mean + half)
        level = _level(scatter, own)
    return Ratio(
        metric=name,
        value=_exp(mean),
        low=low,
        high=high,
        level=level,
        provenance=provenance,
        repeat_count=len(pairs) if paired else min(len(one), len(other)),
        paired=paired,
    )


def holm(levels: Sequence[float | None], level: float = LEVEL) -> tuple[bool, ...]:
    """Return which of several claims may be made so that all of them hold together at one error level.

    Holm's step-down procedure (Scandinavian Journal of Statistics, 1979): the surest claim must pass at the level
    divided by the number of claims, the next at one fewer, until the first that does not. A claim without a level is
    not made.
    """
    order = sorted((found, index) for index, found in enumerate(levels) if found is not None)
    made = [False] * len(levels)
    for rank, (found, index) in enumerate(order):
        if found > level / (len(order) - rank):
            break
        made[index] = True
    return tuple(made)


def margin(ratio: Ratio) -> tuple[float, float | None, float | None]:
    """Return by what part the first point is better than the second, and the ends of its interval.

    Where more is better it is how much more, else how much less: 0.12 stands for 12 % more img/s, or 12 % fewer ms.
    """
    if METRICS[ratio.metric].higher_is_better:
        ends = (ratio.low, ratio.high)
        value, low, high = ratio.value - 1, *(None if end is None else end - 1 for end in ends)
    else:
        ends = (ratio.high, ratio.low)
        value, low, high = 1 - ratio.value, *(None if end is None else 1 - end for end in ends)
    return value, low, high


@dataclass(frozen=True, slots=True)
class _Figure:
    """One run's metric."""

    run: Run
    metric: Metric

    @property
    def logarithm(self) -> float:
        return math.log(self.metric.value)


def _figures(runs: Sequence[Run], name: str) -> list[_Figure]:
    """Return the metric of the runs that a claim may rest on; where they are too few, of every usable run."""
    sound = sound_runs(runs, name)
    chosen = sound if len(sound) >= MIN_VALID else usable_runs(runs)
    return [_Figure(run, metric) for run in chosen if (metric := run.metric(name)) is not None]


def _pairs(one: Sequence[_Figure], other: Sequence[_Figure]) -> list[float]:
    """Return the ratios of repeats that stood in the same block of the same sweep, as logarithms."""
    theirs = {(figure.run.sweep_id, figure.run.repeat): figure.logarithm for figure in other}
    blocks = ((figure, (figure.run.sweep_id, figure.run.repeat)) for figure in one)
    return [figure.logarithm - theirs[block] for figure, block in blocks if block in theirs]


def _scatter_of_pairs(differences: Sequence[float]) -> _Scatter:
    count = len(differences)
    return _Scatter(fmean(differences), math.sqrt(variance(differences) / count), count - 1)


def _scatter_of_both(one: Sequence[_Figure], other: Sequence[_Figure]) -> _Scatter:
    """Return the scatter without pairs (Welch, Biometrika, 1947); his degrees of freedom are rounded down."""
    logarithms = [[figure.logarithm for figure in figures] for figures in (one, other)]
    parts = [variance(values) / len(values) for values in logarithms]
    error = math.sqrt(sum(parts))
    degrees = len(one) + len(other) - 2
    if error > 0:
        shares = [part / sum(parts) for part in parts]
        degrees = math.floor(
            1 / sum(share**2 / (len(values) - 1) for share, values in zip(shares, logarithms, strict=True)) + _ROUNDING
        )
    return _Scatter(fmean(logarithms[0]) - fmean(logarithms[1]), error, degrees)


def _systematic(one: Sequence[_Figure], other: Sequence[_Figure], *, shared: bool) -> float:
    """Return the relative standard uncertainty of the ratio that repeats do not show.

    Where a run has no budget its own interval stands in, and nothing of it cancels.
    """
    mine, theirs = _budget(one), _budget(other)
    if mine is None or theirs is None:
        return math.hypot(_own_interval(one), _own_interval(other))
    both = {line for line in mine.keys() | theirs.keys() if shared and line[1] in SHARED_EFFECTS}
    left = [_relative(mine, line) - _relative(theirs, line) for line in both]
    alone = [combined(line for key, line in budget.items() if key not in both) for budget in (mine, theirs)]
    return math.hypot(*left, *alone)


def _relative(budget: Mapping[tuple[str, str], Contribution], line: tuple[str, str]) -> float:
    return budget[line].standard_uncertainty if line in budget else 0.0


def _budget(figures: Sequence[_Figure]) -> dict[tuple[str, str], Contribution] | None:
    """Return the systematic lines by origin and effect, each relative to its figure, as the median of the runs.

    Lines found from repeated observations are left out: the scatter of the repeats shows them. None where a
    figure of power has no budget.
    """
    found: dict[tuple[str, str], list[Contribution]] = {}
    for figure in figures:
        lines = of_metric(figure.run.budget, figure.metric.name)
        if not lines and figure.metric.name in _OF_POWER:
            return None
        for line in lines:
            if line.kind is EffectKind.B:
                relative = replace(line, standard_uncertainty=line.standard_uncertainty / figure.metric.value)
                found.setdefault((line.origin, line.effect), []).append(relative)
    return {key: _median(lines) for key, lines in found.items()}


def _median(lines: Sequence[Contribution]) -> Contribution:
    return replace(lines[0], standard_uncertainty=median(line.standard_uncertainty for line in lines))


def _own_interval(figures: Sequence[_Figure]) -> float:
    """Return the median relative standard uncertainty that the runs' own intervals state; 0 where they have none."""
    stated = [
        max(metric.high - metric.value, metric.value - metric.low) / metric.value
        for metric in (figure.metric for figure in figures)
        if metric.low is not None and metric.high is not None
    ]
    return median(stated) / NORMAL_95 if stated else 0.0


def _level(scatter: _Scatter, own: float) -> float:
    """Return the error level whose interval would just reach a ratio of 1."""
    distance = abs(scatter.mean)

    def reach(t: float) -> float:
        level = _stated(t, scatter.degrees)
        return math.hypot(t * scatter.error, -_NORMAL.inv_cdf(level / 2) * own)

    if distance == 0:
        return 1.0
    if scatter.error == 0 and own == 0:
        return _LEAST_LEVEL
    if own == 0:
        return _stated(distance / scatter.error, scatter.degrees)
    below, above = 0.0, 1.0
    while reach(above) < distance:
        below, above = above, 2 * above
        if above > _FURTHEST_T:
            return _LEAST_LEVEL
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if reach(middle) < distance else (below, middle)
    return _stated(below, scatter.degrees)


def _stated(t: float, degrees: int) -> float:
    """Return the error level of so many standard errors of scatter."""
    return min(1.0, max(CARE * two_sided_level(t, degrees), _LEAST_LEVEL))


def _exp(logarithm: float) -> float:
    """Return e to a power, kept where it and its percentage fit a float."""
    return math.exp(max(-_FURTHEST_LOG, min(logarithm, _FURTHEST_LOG)))
