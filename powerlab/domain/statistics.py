"""Quantiles for intervals, without a statistics package, so that an agent stays light."""

from __future__ import annotations

import math
from collections.abc import Sequence

COVERAGE = 0.95
NORMAL_95 = 1.959964
"""Half-width of a 95 % interval in standard deviations of a normal distribution."""
NORMAL_99 = 2.575829
"""The same of a 99 % interval."""

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom (tabulated in JCGM 100:2008, table G.2).
_STUDENT_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
# The same at 99 %, from the same table.
_STUDENT_99 = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
    3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
    2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
)  # fmt: skip


def student_95(degrees: int) -> float:
    """Return the two-sided 95 % quantile of Student's t; above 30 degrees by its expansion around the normal's.

    Raises:
        ValueError: there is no such distribution below 1 degree of freedom.
    """
    return _student(degrees, _STUDENT_95, NORMAL_95)


def student_99(degrees: int) -> float:
    """Return the two-sided 99 % quantile of Student's t; raises as :func:`student_95` does."""
    return _student(degrees, _STUDENT_99, NORMAL_99)


def _student(degrees: int, table: Sequence[float], z: float) -> float:
    if degrees < 1:
        raise ValueError("Student's t needs at least 1 degree of freedom")
    if degrees <= len(table):
        return table[degrees - 1]
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def mean_half_width(values: Sequence[float]) -> float | None:
    """Return the half-width of the 95 % interval of the mean of independent values; None for fewer than two."""
    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    deviation = math.hypot(*(value - mean for value in values)) / math.sqrt(count - 1)  # no square that overflows
    return student_95(count - 1) * deviation / math.sqrt(count)
