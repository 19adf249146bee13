"""How many sweeps of either side a gate takes to find a loss, and to let a change without one pass.

The scatter between sweeps is itself known from a few sweeps only. So its upper 80 % limit is planned with (R. H.
Browne, On the use of a pilot sample for sample size determination, Statistics in Medicine 14, 1995): with its estimate,
half of all plans would be too small.
"""

from __future__ import annotations

import math

from powerlab.analysis.gate.loss import to_logarithm, upper_quantile

FOUND_ERROR = 0.01
"""Probability of calling anything a loss where nothing was lost, over all points and metrics together."""
PASS_ERROR = 0.05
"""Probability of letting a point pass whose loss is at the limit or beyond it."""
POWER = 0.95
"""Probability with which a planned gate finds the loss that it is to find, and lets a change without loss pass."""
MOST_SWEEPS = 1000
_LIMIT_Z = 0.841621  # 80 % quantile of the normal distribution


def upper_deviation(deviation: float, degrees: int) -> float:
    """Return the upper 80 % limit of a standard deviation, with chi-squared by Wilson and Hilferty (PNAS 17, 1931)."""
    spread = 2 / (9 * degrees)
    return deviation / math.pow(1 - spread - _LIMIT_Z * math.sqrt(spread), 1.5)


def sweeps_needed(
    name: str, *, deviation: float, degrees: int, max_loss: float, found_loss: float, test_count: int
) -> int | None:
    """Return the sweeps that each side takes, all repeats of the plan in each.

    Args:
        name: the metric.
        deviation: standard deviation between sweeps, on logarithms.
        degrees: its degrees of freedom.
        max_loss: the loss that may be, as a part.
        found_loss: the loss that is to be found, above that.
        test_count: points times metrics that the gate judges at once.

    Returns:
        The smallest number, at least 2; None where even :data:`MOST_SWEEPS` are too few.
    """
    planned = upper_deviation(deviation, degrees)
    limit, found = to_logarithm(name, max_loss), to_logarithm(name, found_loss)

    def enough(count: int) -> bool:
        ahead = 2 * count - 2
        error = planned * math.sqrt(2 / count)
        chance = upper_quantile(1 - POWER, ahead)
        shows = error * (upper_quantile(FOUND_ERROR / test_count, ahead) + chance) <= found
        exceeds = error * chance <= found - limit
        passes = error * (upper_quantile(PASS_ERROR, ahead) + upper_quantile((1 - POWER) / test_count, ahead)) <= limit
        return shows and exceeds and passes

    low, high = 1, 2
    while not enough(high):
        if high >= MOST_SWEEPS:
            return None
        low, high = high, min(2 * high, MOST_SWEEPS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
