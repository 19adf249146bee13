"""Repeats of a point begin at different phases of a sensor that looks only part of the time.

If a load nearly repeats in step with such a sensor, each run shows some parts of a query more than others. Runs that
begin at phases spread over the sensor's period show different ones, so that the scatter of the repeats has it (Yang,
Adamek and Armour, arXiv 2312.02741, advise to shift repetitions so).
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.power import Rail

_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, are spread evenly however many there are (H. Weyl, 1916)."""


def phase_wait_s(now_s: float, repeat: int, rails: Sequence[Rail]) -> float:
    """Return how long a run waits until it may begin: 0 where every sensor looks all the time.

    Args:
        now_s: on the clock whose multiples of the sensor's period are its phase 0.
        repeat: number of the run among those of its point.
        rails: what is recorded.
    """
    period_s = max((rail.update_period_s for rail in rails if rail.seen_share < 1), default=0.0)
    if not period_s:
        return 0.0
    return (repeat * _GOLDEN % 1.0 * period_s - now_s) % period_s
