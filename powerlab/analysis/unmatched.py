"""Points of a set that no point of another one matches, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.analysis.dimensions import DIMENSIONS, Dimension
from powerlab.analysis.matches import all_but
from powerlab.analysis.sets import RunSet
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """A point without a partner.

    Attributes:
        point: the point.
        reason: why the other set has none.
    """

    point: Point
    reason: str


def unmatched(one: RunSet, other: RunSet, ignored: Sequence[str] = ()) -> tuple[Unmatched, ...]:
    """Return the points of one set that the other lacks, in their order.

    Args:
        one: the set whose points are looked at.
        other: the set that may lack them.
        ignored: dimensions in which points may differ and still match.

    Raises:
        PowerlabError: a dimension is not known.
    """
    kept = all_but(ignored)
    theirs = list(dict.fromkeys(run.point for run in other.runs))
    there = {kept(point) for point in theirs}
    dimensions = [dimension for dimension in DIMENSIONS if dimension.title not in ignored]
    return tuple(
        Unmatched(point=point, reason=_reason(point, theirs, dimensions, other.label))
        for point in dict.fromkeys(run.point for run in one.runs)
        if kept(point) not in there
    )


def differing(one: RunSet, other: RunSet) -> tuple[str, ...]:
    """Return the titles of the dimensions of which two sets do not have the same values."""
    points = [dict.fromkeys(run.point for run in each.runs) for each in (one, other)]
    return tuple(
        dimension.title
        for dimension in DIMENSIONS
        if len({frozenset(map(dimension.read, found)) for found in points}) > 1
    )


def _reason(point: Point, theirs: Sequence[Point], dimensions: Sequence[Dimension], label: str) -> str:
    """Name the values that the other set does not have at all; else the values are there, but not together."""
    missing = [
        f"{one.title} {one.read(point) or 'default'}"
        for one in dimensions
        if one.read(point) not in {one.read(other) for other in theirs}
    ]
    if not missing:
        return f"{label} has not measured this combination"
    return f"{label} has no {' and no '.join(missing)}"
