"""What else differs between two sets of runs: how warm the device was when they began, and its clocks.

A difference in a covariate is itself an observation: Welch's test on the runs, each point's around its own mean, with
the same care as a ratio. Where the temperatures differ beyond chance, part of the difference in a figure may come from
that. How large that part may be is estimated by an analysis of covariance (Fisher, Statistical Methods for Research
Workers, 1932): one common slope of the figure's logarithm over the temperature, found within the sets alone. It is a
correction by a straight line, and no proof of a cause.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from powerlab.analysis.comparison import CARE, LEVEL
from powerlab.analysis.summary import MIN_VALID, sound_runs
from powerlab.domain.run import Run
from powerlab.domain.students_t import two_sided_level, two_sided_quantile

_LEAST_DEGREES = 3
"""Degrees of freedom, at least, of a corrected ratio: a slope from fewer runs follows their noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariate:
    """Something that was not meant to differ.

    Attributes:
        title: in words, ``temperature at the start``.
        unit: ``°C`` or ``MHz``.
        read: its value in a run; None where the run does not say.
    """

    title: str
    unit: str
    read: Callable[[Run], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariateDifference:
    """A covariate in a set and in the baseline.

    Attributes:
        title: see :class:`Covariate`.
        unit: of both means.
        one: mean of the set's points.
        other: mean of the baseline's.
        differs: whether they differ beyond chance; None where too few runs say.
    """

    title: str
    unit: str
    one: float
    other: float
    differs: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRatio:
    """A ratio as it would be if both had begun equally warm.

    Attributes:
        value: the ratio.
        low: lower end of its 95 % interval, of scatter alone.
        high: upper end.
        percent_per_c: by how much the figure grows with each °C, within the sets.
    """

    value: float
    low: float
    high: float
    percent_per_c: float


def temperature_c(run: Run) -> float | None:
    """Return how warm the hottest zone was when the run began, in °C."""
    metric = run.metric("start_temperature_c")
    return None if metric is None else metric.value


def clock_mhz(run: Run) -> float | None:
    """Return the processor's clock just before the load, as the mean of its clusters, in MHz."""
    return _mean_mhz(run, "now_hz")


def clock_limit_mhz(run: Run) -> float | None:
    """Return the upper limit of the processor's clock, as the mean of its clusters, in MHz."""
    return _mean_mhz(run, "high_hz")


def _mean_mhz(run: Run, name: str) -> float | None:
    state = None if run.conditions is None else run.conditions.device_state
    found = [hz for clock in (() if state is None else state.cpu_clocks) if (hz := getattr(clock, name)) is not None]
    return fmean(found) / 1e6 if found else None


COVARIATES = (
    Covariate(title="temperature at the start", unit="°C", read=temperature_c),
    Covariate(title="CPU clock before the load", unit="MHz", read=clock_mhz),
    Covariate(title="CPU clock limit", unit="MHz", read=clock_limit_mhz),
)


def covariate_differences(points: Sequence[tuple[Sequence[Run], Sequence[Run]]]) -> tuple[CovariateDifference, ...]:
    """Return every covariate that two sets know.

    Args:
        points: of each point that both have, the runs of the set and those of the baseline.
    """
    found = (_difference(covariate, points) for covariate in COVARIATES)
    return tuple(one for one in found if one is not None)


def _difference(
    covariate: Covariate, points: Sequence[tuple[Sequence[Run], Sequence[Run]]]
) -> CovariateDifference | None:
    read = [tuple([v for run in runs if (v := covariate.read(run)) is not None] for runs in pair) for pair in points]
    known = [pair for pair in read if all(pair)]
    if not known:
        return None
    middles = [fmean(map(fmean, pair)) for pair in known]
    one, other = (
        [value - middle for pair, middle in zip(known, middles, strict=True) for value in pair[side]] for side in (0, 1)
    )
    means = [fmean(fmean(pair[side]) for pair in known) for side in (0, 1)]
    return CovariateDifference(
        title=covariate.title, unit=covariate.unit, one=means[0], other=means[1], differs=_differs(one, other)
    )


def _differs(one: Sequence[float], other: Sequence[float]) -> bool | None:
    if min(len(one), len(other)) < MIN_VALID:
        return None
    parts = [variance(values) / len(values) for values in (one, other)]
    distance = abs(fmean(one) - fmean(other))
    if sum(parts) == 0:
        return distance > 0
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (one, other), strict=True)
    )
    return CARE * two_sided_level(distance / math.sqrt(sum(parts)), degrees) < LEVEL


def corrected_ratio(ones: Sequence[Run], others: Sequence[Run], name: str) -> CorrectedRatio | None:
    """Return the ratio of two sets' figures, corrected for the temperature at which the runs began.

    None where too few valid runs tell both, where the temperature does not vary within the sets, or where the sets have
    no temperature in common: a line must not be drawn further than the runs reach.
    """
    sides = [_logarithms(runs, name) for runs in (ones, others)]
    if min(map(len, sides)) < MIN_VALID:
        return None
    warm = [[temperature for temperature, _ in side] for side in sides]
    if max(min(one) for one in warm) > min(max(one) for one in warm):
        return None
    means = [(fmean(t for t, _ in side), fmean(y for _, y in side)) for side in sides]
    centred = [(t - mean[0], y - mean[1]) for side, mean in zip(sides, means, strict=True) for t, y in side]
    spread = math.fsum(t * t for t, _ in centred)
    degrees = len(centred) - 3
    if spread == 0 or degrees < _LEAST_DEGREES:
        return None
    slope = math.fsum(t * y for t, y in centred) / spread
    residual = math.fsum((y - slope * t) ** 2 for t, y in centred) / degrees
    warmer = means[0][0] - means[1][0]
    middle = means[0][1] - means[1][1] - slope * warmer
    error = math.sqrt(residual * (sum(1 / len(side) for side in sides) + warmer**2 / spread))
    half = two_sided_quantile(LEVEL / CARE, degrees) * error
    return CorrectedRatio(
        value=math.exp(middle),
        low=math.exp(middle - half),
        high=math.exp(middle + half),
        percent_per_c=100 * math.expm1(slope),
    )


def _logarithms(runs: Sequence[Run], name: str) -> list[tuple[float, float]]:
    """Return temperature and logarithm of the figure of the runs that a claim may rest on."""
    return [
        (temperature, math.log(metric.value))
        for run in sound_runs(runs, name)
        if (temperature := temperature_c(run)) is not None
        and (metric := run.metric(name)) is not None
        and metric.value > 0
    ]
