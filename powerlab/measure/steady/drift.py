"""Steady-state test of a series: its drift over the length of a run, with an interval.

The drift is the slope of a straight line by least squares times that length. Its standard error is the usual one, made
wider by the square root of (1 + r) / (1 - r), where r is the correlation of neighbours, and its degrees of freedom are
those of as many independent values as that leaves (Santer et al., *Statistical significance of trends and trend
differences in layer-average atmospheric temperature time series*, J. Geophys. Res. 105, 2000, section 5.1). Noise and r
are those of the residuals around a curve of the fourth degree, not around the line: the bend of a series that
approaches its end is part of its drift, and taken for noise it would hide what it is a sign of. r, which short series
show too low, is corrected by what the curve and the length take from it (Kendall, *Note on bias in the estimation of
autocorrelation*, Biometrika 41, 1954).

A limit makes three answers of it. Steady: the whole 99 % interval lies within the limit, so it is shown that the drift
does not matter. Drifting: the drift is beyond the limit, and 0 is not in its interval. Undecided: everything else.
To judge a slope against a share of the mean, without the beginning of the record, is how IEC 62301:2011, 5.3.2, tells
whether a power is stable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.statistics import student_99

LEAST_VALUES = 12
"""Fewer values show neither their noise nor how neighbours hang together."""
_DEGREE = 4
_GREATEST_CORRELATION = 0.95


class Answer(StrEnum):
    """What can be said of a series."""

    STEADY = "steady"
    DRIFTING = "drifting"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far a series would go over the length of a run if it went on as it does.

    Attributes:
        value: in the unit of the series; below 0 where it falls.
        half_width: of its 99 % interval; infinite where there are too few values.
    """

    value: float
    half_width: float

    def answer(self, limit: float) -> Answer:
        """Say whether the series is steady, where a drift up to ``limit`` to either side does not matter."""
        if abs(self.value) + self.half_width <= limit:
            return Answer.STEADY
        if abs(self.value) > max(limit, self.half_width):
            return Answer.DRIFTING
        return Answer.UNDECIDED


def drift(time_s: NDArray[np.float64], value: NDArray[np.float64], ahead_s: float) -> Drift:
    """Return the drift of a series over a time.

    Args:
        time_s: shape (n,), increasing.
        value: shape (n,), in any unit.
        ahead_s: the length of the run to come.
    """
    if value.size < LEAST_VALUES:
        return Drift(value=0.0, half_width=math.inf)
    from_middle_s = time_s - time_s.mean()
    spread = float(np.sum(from_middle_s**2))
    slope = float(np.sum(from_middle_s * (value - value.mean()))) / spread
    deviation, correlation = _noise(from_middle_s / np.abs(from_middle_s).max(), value)
    widened = (1 + correlation) / (1 - correlation)
    degrees = max(1, math.floor(value.size / widened) - _DEGREE - 1)
    error = deviation * math.sqrt(widened / spread)
    return Drift(value=slope * ahead_s, half_width=student_99(degrees) * error * ahead_s)


def _noise(place: NDArray[np.float64], value: NDArray[np.float64]) -> tuple[float, float]:
    """Return the standard deviation around a curve and the correlation of neighbours, 0 to 0.95."""
    coefficients = np.polynomial.polynomial.polyfit(place, value, _DEGREE)
    residual = value - np.polynomial.polynomial.polyval(place, coefficients)
    squares = float(np.sum(residual**2))
    if squares == 0.0:
        return 0.0, 0.0
    seen = float(np.sum(residual[1:] * residual[:-1])) / squares
    taken = (_DEGREE + 1 + (_DEGREE + 2) * max(0.0, seen)) / value.size
    correlation = min(_GREATEST_CORRELATION, max(0.0, seen + taken))
    return math.sqrt(squares / (value.size - _DEGREE - 1)), correlation
