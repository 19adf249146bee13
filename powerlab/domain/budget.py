"""The uncertainty budget of a figure: how its lines make its interval (JCGM 100:2008, 5.1.2 and 5.2.2).

One rule, for whoever makes an interval and whoever checks one: effects of :data:`TOGETHER` are the same for every rail
of a source, so those lines are added; everything else is independent and is combined as the root of the sum of squares.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from powerlab.domain.coverage import half_width_95
from powerlab.domain.run import Contribution

TOGETHER = frozenset({"gain", "edge", "lag", "sampling", "clock"})
"""Rails of one source may share a reference, are late alike, and are read together while they follow the same load."""
RECTANGULAR = frozenset({"gain", "offset", "quantisation", "gap", "drift", "in-step", "clock"})
"""Bounds: the value lies anywhere within them. Everything else is about normal."""
IDLE_PREFIX = "idle "
"""Begins the effect of a rail's line that comes from the idle baseline, in a figure that has lines of both."""
IDLE, REPEATS = "idle", "repeats"
"""The origins that are no rails: what happened between two idle baselines, and the scatter of a point's repeats."""

INVERTED = frozenset({"efficiency_img_per_s_per_w"})
"""Figures that are an energy's inverse: their interval is the energy's, turned over."""
MAY_BE_NEGATIVE = frozenset({"energy_above_idle_per_image_j", "start_temperature_c", "end_temperature_c"})
"""Figures that are a difference, or on a scale whose 0 is not nothing; every other one is no less than 0."""


class Line(Protocol):
    """What the rule looks at in a line of a budget."""

    @property
    def origin(self) -> str:
        """A rail's key, or a word."""

    @property
    def effect(self) -> str:
        """What it is."""

    @property
    def standard_uncertainty(self) -> float:
        """In the figure's unit."""


def added_with(line: Line) -> tuple[str, str] | None:
    """Return what a line is added with, its source and effect; None where it is independent of every other line."""
    effect = line.effect.removeprefix(IDLE_PREFIX)
    return (line.origin.partition(":")[0], line.effect) if effect in TOGETHER else None


def combined(lines: Iterable[Line]) -> float:
    """Return the combined standard uncertainty, in the lines' unit; 0 for none."""
    return math.hypot(*(uncertainty for _, uncertainty in _independent(lines)))


def half_width(lines: Iterable[Line]) -> float:
    """Return the half-width of the 95 % interval, in the lines' unit; 0 for no lines."""
    found = _independent(lines)
    rectangle = max((uncertainty for effect, uncertainty in found if effect in RECTANGULAR), default=0.0)
    return half_width_95(math.hypot(*(uncertainty for _, uncertainty in found)), rectangle)


def _independent(lines: Iterable[Line]) -> list[tuple[str, float]]:
    """Return effects and standard uncertainties that know nothing of each other: lines that belong together, added."""
    added: defaultdict[tuple[str, str], float] = defaultdict(float)
    alone = []
    for line in lines:
        group = added_with(line)
        if group is None:
            alone.append((line.effect.removeprefix(IDLE_PREFIX), line.standard_uncertainty))
        else:
            added[group] += line.standard_uncertainty
    return alone + [(effect.removeprefix(IDLE_PREFIX), uncertainty) for (_, effect), uncertainty in added.items()]


def interval(metric: str, value: float, distance: float) -> tuple[float, float] | tuple[None, None]:
    """Return both ends of a figure's 95 % interval, in its unit, at a distance (the half-width).

    None where there is no upper end: the inverse of an energy that may be 0.
    """
    if metric in INVERTED:
        relative = distance / value
        return (value / (1 + relative), value / (1 - relative)) if relative < 1 else (None, None)
    low = value - distance
    return low if metric in MAY_BE_NEGATIVE else max(0.0, low), value + distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A line and its part of the combined variance.

    Attributes:
        line: the line.
        percent: its part; those of a figure's lines add up to 100. An added line counts with what it has in common with
            the lines it is added with.
    """

    line: Contribution
    percent: float


def shares(lines: Iterable[Contribution], metric: str) -> tuple[Share, ...]:
    """Return one figure's lines, the largest part of the variance first; none where nothing is uncertain."""
    chosen = [line for line in lines if line.metric == metric]
    whole = combined(chosen)
    if whole == 0:
        return ()
    sums: defaultdict[tuple[str, str] | None, float] = defaultdict(float)
    for line in chosen:
        sums[added_with(line)] += line.standard_uncertainty
    found = [Share(line=line, percent=_percent(line, sums, whole)) for line in chosen]
    return tuple(sorted(found, key=lambda share: -share.percent))


def _percent(line: Contribution, sums: dict[tuple[str, str] | None, float], whole: float) -> float:
    group = added_with(line)
    beside = line.standard_uncertainty if group is None else sums[group]
    # Divided before they are multiplied: the square of a small uncertainty may be no float any more.
    return 100 * (line.standard_uncertainty / whole) * (beside / whole)


def of_metric(lines: Iterable[Contribution], metric: str) -> Sequence[Contribution]:
    """Return one figure's lines."""
    return [line for line in lines if line.metric == metric]
