"""The points of one work as series over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from powerlab.analysis.dimensions import varying
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Provenance
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points that differ in threads alone.

    Attributes:
        index: chooses colour and marker.
        label: in which words they differ from other series.
        members: by rising thread count.
    """

    index: int
    label: str
    members: tuple[PointSummary, ...]


def series_of(summaries: Sequence[PointSummary]) -> tuple[Series, ...]:
    """Return the series, in the order in which they first appear."""
    groups: dict[Point, list[PointSummary]] = {}
    for summary in summaries:
        groups.setdefault(_without_threads(summary.point), []).append(summary)
    named = point_labels(groups)
    only = next(iter(groups)).mode if len(groups) == 1 else ""
    return tuple(
        Series(
            index=index,
            label=only or named(point),
            members=tuple(sorted(members, key=lambda one: one.point.threads)),
        )
        for index, (point, members) in enumerate(groups.items())
    )


def point_labels(points: Iterable[Point]) -> Callable[[Point], str]:
    """Return what says a point as :func:`varying` does, but without the word ``mode``: a picture has little room."""
    named = varying(points)
    return lambda point: ", ".join(part.removeprefix("mode ") for part in named(point).split(", "))


def _without_threads(point: Point) -> Point:
    return replace(point, threads=1)


def thread_counts(summaries: Sequence[PointSummary]) -> tuple[int, ...]:
    """Return every thread count once, rising."""
    return tuple(sorted({summary.point.threads for summary in summaries}))


def hollow(summary: PointSummary, name: str) -> bool:
    """Whether a marker is to be hollow: the figure was not measured."""
    metric = summary.metric(name)
    return metric is not None and metric.provenance is not Provenance.MEASURED


def provenance_words(summaries: Sequence[PointSummary], name: str) -> str:
    """Return ``measured``, or ``estimated and measured`` if both kinds are shown."""
    found = {metric.provenance.value for summary in summaries if (metric := summary.metric(name)) is not None}
    return " and ".join(sorted(found))
