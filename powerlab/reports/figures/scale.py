"""Axes: round ticks, and values as positions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powerlab.analysis.rounding import significant_decimals

_STEPS = (1.0, 2.0, 5.0, 10.0)


def ticks(end: float, most: int = 6) -> tuple[float, ...]:
    """Return round values from 0 to at least ``end``, at most ``most`` beside 0; (0, 1) where there is no size."""
    if not math.isfinite(end) or end <= 1e-300:
        return (0.0, 1.0)
    decade = 10.0 ** math.floor(math.log10(end / most))
    step = next(step * decade for step in _STEPS if end <= most * step * decade * (1 + 1e-9))
    count = math.ceil(end / step * (1 - 1e-9))
    return tuple(step * index for index in range(count + 1))


def tick_text(value: float, step: float) -> str:
    """Return a tick as an axis writes it, with as many decimals as its step has."""
    return f"{value:.{significant_decimals(step, 1)}f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values from 0 to ``end`` as positions in px from ``first`` to ``last``."""

    end: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Return where a value is; beyond the end, where it ends."""
        return self.first + (self.last - self.first) * min(max(value / self.end, 0.0), 1.0)
