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


def nothing_in_common(one: RunSet, others: Sequence[RunSet], ignored: Sequence[str] = ()) -> str:
    """Return in a sentence why no point of a set is in any of the others, and how they may still be compared."""
    ours = dict.fromkeys(run.point for run in one.runs)
    theirs = dict.fromkeys(run.point for other in others for run in other.runs)
    apart = [
        dimension.title
        for dimension in DIMENSIONS
        if dimension.title not in ignored and not {*map(dimension.read, ours)} & {*map(dimension.read, theirs)}
    ]
    said = f"{one.label} has no point in common with {' or '.join(other.label for other in others)}"
    if not apart:
        return f"{said}, only values of each dimension; measure the same combinations, or use --ignore DIMENSION."
    options = " ".join(f"--ignore {title!r}" if " " in title else f"--ignore {title}" for title in apart)
    return f"{said}: they differ in {' and '.join(apart)}; {options} compares them all the same."


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
