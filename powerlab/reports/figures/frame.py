"""A plot's frame: axes with ticks and titles, and the legend above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.domain.quantity import Metric
from powerlab.reports.figures.palette import Palette
from powerlab.reports.figures.scale import Scale, tick_text, ticks
from powerlab.reports.figures.series import Series
from powerlab.reports.figures.svg import Canvas, text_width

WIDTH = 560.0
_HEIGHT = 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 18.0, 14.0, 50.0
INNER_PX = WIDTH - _LEFT - _RIGHT
"""The width between the axes."""
_LEGEND_PX = 20.0
_CAP = 3.5


@dataclass(frozen=True, slots=True)
class Frame:
    """A canvas with its axes drawn; positions inside it.

    Attributes:
        canvas: to draw on.
        x: of a numeric x axis; None where it has categories.
        y: the y axis.
        top: of the plot.
        bottom: of the plot.
        categories: where each category of the x axis is.
    """

    canvas: Canvas
    x: Scale | None
    y: Scale
    top: float
    bottom: float
    categories: tuple[float, ...] = ()

    def interval(self, x: float, metric: Metric, colour: str) -> None:
        """Draw the 95 % interval of a figure on the y axis; nothing where it has none."""
        if metric.low is None or metric.high is None:
            return
        high, low = self.y.at(metric.high), self.y.at(metric.low)
        self.canvas.line(x, high, x, low, colour, width=1.2)
        for end in (high, low):
            self.canvas.line(x - _CAP, end, x + _CAP, end, colour, width=1.2)

    def interval_across(self, y: float, metric: Metric, colour: str) -> None:
        """Draw the same on a numeric x axis."""
        if self.x is None or metric.low is None or metric.high is None:
            return
        low, high = self.x.at(metric.low), self.x.at(metric.high)
        self.canvas.line(low, y, high, y, colour, width=1.2)
        for end in (low, high):
            self.canvas.line(end, y - _CAP, end, y + _CAP, colour, width=1.2)


def frame(
    palette: Palette,
    series: Sequence[Series],
    *,
    x_title: str,
    y_title: str,
    y_end: float,
    x_end: float | None = None,
    categories: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Frame:
    """Draw axes and legend.

    Args:
        palette: the colours.
        series: what the legend names.
        x_title: of the x axis, with its unit.
        y_title: of the y axis.
        y_end: the largest value to show.
        x_end: the same of a numeric x axis.
        categories: of an x axis without numbers.
        extra: further names of the legend, each with a dashed line.
    """
    rows = _legend_rows([one.label for one in series], extra)
    top = _TOP + _LEGEND_PX * len(rows)
    canvas = Canvas(WIDTH, _HEIGHT + _LEGEND_PX * len(rows), palette)
    bottom = canvas.height - _BOTTOM
    _legend(canvas, rows)
    steps = ticks(y_end)
    y = Scale(end=steps[-1], first=bottom, last=top)
    for step in steps:
        canvas.line(_LEFT, y.at(step), WIDTH - _RIGHT, y.at(step), palette.line if step == 0 else palette.grid)
        label = tick_text(step, steps[1])
        canvas.text(_LEFT - 8, y.at(step) + 4.5, label, colour=palette.muted, anchor="end", size=12)
    canvas.text(16, (top + bottom) / 2, y_title, colour=palette.muted, anchor="middle", size=12, turned=True)
    canvas.text(
        (_LEFT + WIDTH - _RIGHT) / 2, canvas.height - 10, x_title, colour=palette.muted, anchor="middle", size=12
    )
    if x_end is None:
        width = INNER_PX / max(1, len(categories))
        places = tuple(_LEFT + width * (index + 0.5) for index in range(len(categories)))
        for place, category in zip(places, categories, strict=True):
            canvas.text(place, bottom + 18, category, colour=palette.muted, anchor="middle", size=12)
        return Frame(canvas, None, y, top, bottom, places)
    across = ticks(x_end)
    x = Scale(end=across[-1], first=_LEFT, last=WIDTH - _RIGHT)
    for step in across:
        canvas.line(x.at(step), top, x.at(step), bottom, palette.line if step == 0 else palette.grid)
        label = tick_text(step, across[1])
        canvas.text(x.at(step), bottom + 18, label, colour=palette.muted, anchor="middle", size=12)
    return Frame(canvas, x, y, top, bottom)


_Key = tuple[int | None, str, float]
"""A series' index, or None for a dashed line; its label; where it begins."""


def _legend_rows(labels: Sequence[str], extra: Sequence[str]) -> list[list[_Key]]:
    rows: list[list[_Key]] = [[]]
    x = _LEFT
    for index, label in [*enumerate(labels), *((None, one) for one in extra)]:
        width = text_width(label, 12) + 34
        if rows[-1] and x + width > WIDTH - _RIGHT:
            rows.append([])
            x = _LEFT
        rows[-1].append((index, label, x))
        x += width
    return rows


def _legend(canvas: Canvas, rows: Sequence[Sequence[_Key]]) -> None:
    palette = canvas.palette
    for row, keys in enumerate(rows):
        y = 16 + _LEGEND_PX * row
        for index, label, x in keys:
            if index is None:
                canvas.line(x, y - 4, x + 14, y - 4, palette.muted, width=1.2, dash="3 3")
            else:
                canvas.marker(index, x + 7, y - 4, palette.colour(index))
            canvas.text(x + 20, y, label, colour=palette.muted, size=12)
