"""Points in words, in the visitor's language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from powerlab.analysis.dimensions import DIMENSIONS, Dimension, varied
from powerlab.analysis.dimensions import shown as dimensions_shown
from powerlab.domain.sweep import Point
from powerlab_dashboards.format import count, model_label
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_WORDS: Mapping[str, str] = {
    "bound ms": mark("within %(value)s ms"),
    "processor": mark("on %(value)s"),
    "optimizer": mark("optimizer %(value)s"),
    "preparation": mark("preparation %(value)s"),
    "recompute": mark("recompute %(value)s"),
    "batch": mark("batch %(value)s"),
    "spin us": mark("spin %(value)s us"),
    "cores": mark("cores %(value)s"),
    "mode": mark("mode %(value)s"),
}
"""By a dimension's title; the values of others speak for themselves."""
_USUAL = tuple(dimension for dimension in DIMENSIONS if dimension.title in {"threads", "batch", "mode"})


def value_words(dimension: Dimension, point: Point) -> str:
    """Return a point's value in one dimension: ``2 threads``; empty where it has none and nothing is said instead."""
    if dimension.title == "threads":
        return count(point.threads, "thread")
    if dimension.title == "slices":
        return count(point.workload.slices, "slice")
    if dimension.title == "queues":
        return count(point.workload.queues, "queue")
    if dimension.title == "devices":
        return count(point.workload.nodes, "device")
    if dimension.title == "model":
        return model_label(point.workload.model)
    value = dimension.read(point) or (_("default") if dimension.otherwise else "")
    return "" if not value else _(_WORDS[dimension.title], value=value) if dimension.title in _WORDS else value


def point_words(point: Point) -> str:
    """Return all that a point is: ``resnet50, batch 1, 2 threads, mode MAXN``."""
    return ", ".join(filter(None, (value_words(dimension, point) for dimension in dimensions_shown([point]))))


def naming(points: Iterable[Point]) -> Callable[[Point], str]:
    """Return what names a point by the dimensions in which these points differ; by the usual ones where none do."""
    dimensions = varied(points) or _USUAL
    return lambda point: ", ".join(filter(None, (value_words(dimension, point) for dimension in dimensions)))
