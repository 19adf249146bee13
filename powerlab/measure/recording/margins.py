"""Recording time before and after a window."""

from __future__ import annotations

from collections.abc import Iterable

from powerlab.domain.power import Rail

MIN_MARGIN_S = 0.1
MAX_MARGIN_S = 2.0


def margin_s(rails: Iterable[Rail], sample_period_s: float) -> float:
    """Return how many seconds hold enough updates of the slowest rail to find a window's edges."""
    slowest_s = max((_reach_s(rail) for rail in rails), default=0.0)
    return min(MAX_MARGIN_S, max(MIN_MARGIN_S, 3 * sample_period_s, slowest_s))


def _reach_s(rail: Rail) -> float:
    """Return how far from an end of the window a reading may lie that tells of it: two updates, or the lag and one."""
    return rail.update_period_s + max(rail.update_period_s, rail.lag_s + 2 * rail.lag_error_s)
