"""The dimensions that a sweep varied: which of them a chart has for axes, panels and series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from powerlab.analysis.best import work_of
from powerlab.analysis.dimensions import Dimension, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.model_name import short
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Processor
from powerlab_dashboards.format import model_label

MODEL = "model"
THREADS = "threads"
MODE = "mode"


def axes_of(points: Sequence[Point], x: str = "", y: str = "") -> tuple[Dimension | None, Dimension | None]:
    """Return a heatmap's dimensions: those that were asked for if they varied, else threads by power mode, or others.

    Returns:
        The horizontal and the vertical one; None where no dimension is left.
    """
    found = {dimension.title: dimension for dimension in varied(points)}
    usual = [*(title for title in (*_threads(points), *_numeric(found.values())) if title in found), *_apart(found)]
    horizontal = _first([x, *usual], found, but=y if y != x else "")
    vertical = _first([y, MODE, *_apart(found)], found, but=horizontal)
    return found.get(horizontal), found.get(vertical)


def numeric_axis(points: Sequence[Point], x: str = "") -> Dimension | None:
    """Return the dimension of numbers to draw lines over: the one asked for, else threads, else any that varied."""
    found = {dimension.title: dimension for dimension in varied(points) if dimension.numeric}
    return found.get(_first([x, *_threads(points), *found], found))


def work_label(point: Point) -> str:
    """Return what a point's device is asked to do, with the model as people call it."""
    model = point.workload.model
    return model_label(model) + work_of(point).removeprefix(short(model))


def by_work(summaries: Sequence[PointSummary]) -> dict[str, list[PointSummary]]:
    """Return the points that may be compared, by what they do."""
    found: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        found.setdefault(work_label(summary.point), []).append(summary)
    return found


def _threads(points: Iterable[Point]) -> list[str]:
    """Return the title of threads where some processor had several counts: that a card has one is no comparison."""
    counts: dict[Processor, set[int]] = {}
    for point in points:
        counts.setdefault(point.workload.processor, set()).add(point.threads)
    return [THREADS] if any(len(found) > 1 for found in counts.values()) else []


def _first(titles: Sequence[str], found: dict[str, Dimension], but: str = "") -> str:
    return next((title for title in titles if title in found and title != but), "")


def _numeric(found: Iterable[Dimension]) -> list[str]:
    return [dimension.title for dimension in found if dimension.numeric]


def _apart(found: dict[str, Dimension]) -> list[str]:
    """Return the dimensions with the model last: each model has a colour scale of its own."""
    return sorted(found, key=lambda title: title == MODEL)
