"""Colours and markers of series, and their legend."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from powerlab.analysis.dimensions import Dimension, values_of, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab.domain.sweep import Point
from powerlab_dashboards.charts.axes import MODE
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.theme import SYMBOLS, Theme
from powerlab_dashboards.places import value_words

_FIRST = (MODE, "batch")
"""What colour and marker encode, if it varied."""


class Look:
    """Colour encodes one dimension that varied, the marker a second one; if only one varied, both encode it.

    Attributes:
        theme: the page's colours.
    """

    def __init__(self, theme: Theme, summaries: Sequence[PointSummary], apart: Collection[str] = ()) -> None:
        """Choose the dimensions.

        Args:
            theme: the page's colours.
            summaries: every point of the figure.
            apart: titles of the dimensions that the figure shows otherwise, as axes, panels or labels.
        """
        self.theme = theme
        points = [summary.point for summary in summaries]
        self._dimensions = sorted(
            (one for one in varied(points) if one.title not in apart),
            key=lambda one: _FIRST.index(one.title) if one.title in _FIRST else len(_FIRST),
        )
        self._shown = self._dimensions[:2]
        self._values = [values_of(dimension, points) for dimension in self._shown]
        self._only = plain(points[0].mode) if points else ""

    @property
    def unshown(self) -> list[Dimension]:
        """The dimensions that neither colour nor marker tells."""
        return self._dimensions[2:]

    def series(self, summaries: Sequence[PointSummary]) -> Iterator[list[PointSummary]]:
        """Yield the points that are alike in all but what the figure shows otherwise."""
        groups: dict[tuple[str, ...], list[PointSummary]] = {}
        for summary in summaries:
            key = tuple(dimension.read(summary.point) for dimension in self._dimensions)
            groups.setdefault(key, []).append(summary)
        yield from groups.values()

    def name(self, point: Point) -> str:
        """Return the series of a point in words."""
        return ", ".join(_words(dimension, point) for dimension in self._dimensions) or self._only

    def colour(self, point: Point) -> str:
        """Return the series' colour."""
        return self.theme.colour(self._place(0, point) if self._shown else 0)

    def symbol(self, point: Point) -> str:
        """Return the series' marker."""
        if not self._shown:
            return SYMBOLS[0]
        place = self._place(len(self._shown) - 1, point)
        return SYMBOLS[(place + (place // len(SYMBOLS)) * (len(self._shown) == 1)) % len(SYMBOLS)]

    def group(self, point: Point) -> str:
        """Return the legend group that toggles the series."""
        return _words(self._shown[0], point) if self._shown else self._only

    def keys(self, summaries: Sequence[PointSummary]) -> list[dict[str, Any]]:
        """Return empty traces that only add legend entries."""
        points = [summary.point for summary in summaries]
        if len(self._shown) < 2:
            firsts = {self.group(point): point for point in reversed(self._ordered(0, points))}
            return [
                series_key(name, self.colour(point), self.symbol(point)) for name, point in reversed(firsts.items())
            ]
        colours = {_words(self._shown[0], point): self.colour(point) for point in self._ordered(0, points)}
        symbols = {_words(self._shown[1], point): self.symbol(point) for point in self._ordered(1, points)}
        return [
            *(series_key(name, colour, SYMBOLS[0]) for name, colour in colours.items()),
            *(series_key(name, self.theme.muted, symbol) for name, symbol in symbols.items()),
        ]

    def _ordered(self, index: int, points: Sequence[Point]) -> list[Point]:
        return sorted(points, key=lambda point: self._place(index, point)) if self._shown else list(points)

    def _place(self, index: int, point: Point) -> int:
        return self._values[index].index(self._shown[index].read(point))


def error_bars(metrics: Sequence[Metric], colour: str) -> dict[str, Any]:
    """Return 95 % intervals as error bars; a figure without an interval has none, nor an end of one."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if metric.high is None else metric.high - metric.value for metric in metrics],
        "arrayminus": [0.0 if metric.low is None else metric.value - metric.low for metric in metrics],
        "visible": any(metric.low is not None or metric.high is not None for metric in metrics),
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _words(dimension: Dimension, point: Point) -> str:
    """Return a value for a legend: power modes and engines need no word before their names."""
    return plain(point.mode if dimension.title == MODE else value_words(dimension, point))


def series_key(name: str, colour: str, symbol: str) -> dict[str, Any]:
    """Return an empty trace that only adds a legend entry."""
    marker = {"size": 9, "color": colour, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "x": [None], "y": [None], "name": name, "legendgroup": name,
            "marker": marker}  # fmt: skip
