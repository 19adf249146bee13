"""Which point takes the least power at every arrival rate: the lower envelope of straight lines.

A point that idles between images takes ``idle power + rate x J/img above idle``, a straight line over the arrival rate
as far as the point can keep up. The envelope changes where two lines cross, and where a point comes in or drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLine:
    """A point's mean power over the arrival rate.

    Attributes:
        idle_w: at rate 0.
        above_idle_j: J/img above idle.
        from_rate: the least rate, in img/s, at which the point is allowed.
        to_rate: the highest at which it keeps up.
    """

    idle_w: float
    above_idle_j: float
    from_rate: float
    to_rate: float

    def power_w(self, rate: float) -> float:
        """Return the mean power at an arrival rate."""
        return self.idle_w + rate * self.above_idle_j

    def holds(self, rate: float) -> bool:
        """Whether the point is allowed and keeps up at a rate."""
        return self.from_rate <= rate <= self.to_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A range of arrival rates, in img/s, in which one line is the lowest.

    Attributes:
        line: its index.
        from_rate: where the range begins.
        to_rate: where it ends.
    """

    line: int
    from_rate: float
    to_rate: float


def crossing(one: PowerLine, other: PowerLine) -> float | None:
    """Return the rate at which two lines cross; None where they do at no rate above 0."""
    slope = one.above_idle_j - other.above_idle_j
    if slope == 0:
        return None
    rate = (other.idle_w - one.idle_w) / slope
    return rate if rate > 0 else None


def envelope(lines: Sequence[PowerLine]) -> tuple[Stretch, ...]:
    """Return the lowest line in every range of rates above 0, by rising rate; of equal ones the first.

    A range that no line holds is left out.
    """
    ends = {rate for line in lines for rate in (max(0.0, line.from_rate), line.to_rate)}
    crossings = {rate for one, other in combinations(lines, 2) if (rate := crossing(one, other)) is not None}
    found: list[Stretch] = []
    for start, end in pairwise(sorted({0.0, *ends, *crossings})):
        middle = start + (end - start) / 2
        held = [index for index, line in enumerate(lines) if line.holds(middle)]
        if not held or not start < middle < end:
            continue
        lowest = min(held, key=lambda index: lines[index].power_w(middle))
        goes_on = bool(found) and found[-1].line == lowest and found[-1].to_rate == start
        begin = found.pop().from_rate if goes_on else start
        found.append(Stretch(line=lowest, from_rate=begin, to_rate=end))
    return tuple(found)
