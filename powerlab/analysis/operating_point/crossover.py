"""Where the least energy per image changes from one point to another, and how surely that is known.

The interval is found as Fieller did for ratios (Journal of the Royal Statistical Society B, 1954): it holds every rate
at which the two points, compared as all points are, do not differ significantly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from powerlab.analysis.comparison import compare
from powerlab.analysis.operating_point.arrivals import ENERGY, at_rate
from powerlab.domain.run import Run

_STEPS = 24
_LEAST_SHARE = 1e-3
"""Rates are searched down to this share of the crossover's; further down nothing but idle power is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The rates, in img/s, between which a crossover lies; an open end is None."""

    low: float | None
    high: float | None


def crossover_interval(below: Sequence[Run], above: Sequence[Run], rate: float, highest: float) -> Interval:
    """Return the 95 % interval of a crossover.

    Args:
        below: the runs of the point that takes less below it.
        above: those of the point that takes less above it.
        rate: the crossover, in img/s.
        highest: up to where both points keep up.
    """

    def surely(rate: float, side: int) -> bool:
        ratio = compare(at_rate(below, rate), at_rate(above, rate), ENERGY)
        if ratio is None or ratio.low is None or ratio.high is None:
            return False
        return ratio.high < 1 if side < 0 else ratio.low > 1

    return Interval(
        low=_last(lambda at: surely(at, -1), rate * _LEAST_SHARE, rate),
        high=_last(lambda at: surely(at, 1), highest, rate),
    )


def _last(sure: Callable[[float], bool], outside: float, inside: float) -> float | None:
    """Return the rate nearest to ``inside`` at which it is sure, by bisection; None where it is not even outside."""
    if not sure(outside):
        return None
    for _ in range(_STEPS):
        middle = math.sqrt(outside * inside)
        outside, inside = (middle, inside) if sure(middle) else (outside, middle)
    return outside
