"""Student's t distribution for error levels that no table lists."""

from __future__ import annotations

import math
from functools import cache

_MOST_TERMS = 500
_HALVINGS = 60
_ACCURACY = 1e-14
_TINY = 1e-300


def two_sided_level(t: float, degrees: float) -> float:
    """Return the probability that Student's t lies further from 0 than ``t``, to either side.

    It is the regularised incomplete beta function I(v / (v + t²); v / 2, 1 / 2) (Abramowitz and Stegun, 26.7.1).

    Args:
        t: how far from 0; its sign does not count.
        degrees: degrees of freedom, above 0; they need not be whole.

    Raises:
        ValueError: there is no such distribution without degrees of freedom.
    """
    if degrees <= 0:
        raise ValueError("Student's t needs degrees of freedom above 0")
    if math.isinf(t):
        return 0.0
    ratio = t / math.sqrt(degrees)  # squared here, t² of a large t would overflow
    x = 1.0 / (1.0 + ratio * ratio)
    rest = x * ratio * ratio if abs(ratio) < 1 else 1.0 - x  # 1 - x would lose the digits of a small t
    return min(1.0, _incomplete_beta(x, rest, degrees / 2, 0.5))


@cache
def two_sided_quantile(level: float, degrees: int) -> float:
    """Return how far from 0 Student's t lies, to either side, with a probability of ``level``.

    Raises:
        ValueError: there is no such distribution without degrees of freedom, or the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError("an error level lies between 0 and 1")
    below, above = 0.0, 1.0
    while two_sided_level(above, degrees) > level:
        below, above = above, 2 * above
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if two_sided_level(middle, degrees) > level else (below, middle)
    return above


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function for 0 <= x <= 1; ``rest`` is 1 - x in full precision."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    log_x, log_rest = (math.log1p(-rest), math.log(rest)) if rest < x else (math.log(x), math.log1p(-x))
    factor = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * log_x + b * log_rest)
    if x < (a + 1) / (a + b + 2):
        return factor * _continued_fraction(x, a, b) / a
    return 1 - factor * _continued_fraction(rest, b, a) / b


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Evaluate the function's continued fraction by Lentz's method (Press et al., Numerical Recipes, 6.4)."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _ACCURACY:
            break
    return value


def _not_zero(value: float) -> float:
    return _TINY if value == 0 else value
