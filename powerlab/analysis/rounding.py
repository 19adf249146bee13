"""How many decimals a figure is printed with: the one rule of the tables, the sentences and the dashboards.

An interval keeps two significant digits on its wider side, and the figure ends at the same place (JCGM 100:2008,
7.2.6). Nothing here chooses characters: a terminal and a page write signs differently.
"""

from __future__ import annotations

import math

MOST_DECIMALS = 12
LOPSIDED = 1.5
"""An interval with one side this many times wider than the other shows both."""


def significant_decimals(value: float, digits: int) -> int:
    """Return the decimals that leave ``value`` so many significant digits, after rounding; 0 where it has none."""
    if not math.isfinite(value) or value == 0:
        return 0
    rounded = float(f"{abs(value):.{digits - 1}e}")
    if rounded == math.inf:  # rounded up from the largest float
        return 0
    return _limited(digits - 1 - math.floor(math.log10(rounded)))


def interval_decimals(half_width: float) -> int | None:
    """Return the decimals an interval of that half-width supports; None where it is not above 0 or not finite."""
    if not math.isfinite(half_width) or half_width <= 0:
        return None
    return significant_decimals(half_width, 2)


def lopsided(below: float, above: float) -> bool:
    """Whether the two sides of an interval differ so much that one figure for both would mislead."""
    return max(below, above) > LOPSIDED * min(below, above)


def _limited(decimals: int) -> int:
    return min(max(decimals, 0), MOST_DECIMALS)
