"""Efficiency over threads and everything else that varies, as a table of coloured cells."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary
from powerlab.reports.figures.base import Drawing
from powerlab.reports.figures.frame import WIDTH
from powerlab.reports.figures.palette import Palette
from powerlab.reports.figures.series import provenance_words, series_of, thread_counts
from powerlab.reports.figures.svg import Canvas, text_width
from powerlab.reports.text import figure_text

_NEEDS = ("efficiency_img_per_s_per_w",)
_METRIC = _NEEDS[0]
_CELL_PX, _GAP_PX = 46.0, 3.0
_WIDEST_LABEL = 210.0
_STRONGEST = 0.55
"""The opacity of the best cell: the page's ink must be read on it."""


def draw(summaries: Sequence[PointSummary], palette: Palette) -> str:
    """Draw a row for each series; at least one point has the figure."""
    series, counts = series_of(summaries), thread_counts(summaries)
    left = min(_WIDEST_LABEL, max(text_width(one.label, 12) for one in series) + 16)
    canvas = Canvas(WIDTH, 34 + (_CELL_PX + _GAP_PX) * len(series) + 30, palette)
    width = (WIDTH - left - 6) / len(counts)
    canvas.text(left - 12, 20, "threads", colour=palette.muted, anchor="end", size=12)
    for column, count in enumerate(counts):
        canvas.text(left + width * (column + 0.5), 20, str(count), colour=palette.muted, anchor="middle", size=12)
    best: dict[str, float] = {}
    for one in summaries:
        if (metric := one.metric(_METRIC)) is not None:
            best[metric.provenance] = max(metric.value, best.get(metric.provenance, 0.0))
    for row, line in enumerate(series):
        y = 32 + (_CELL_PX + _GAP_PX) * row
        canvas.text(left - 12, y + _CELL_PX / 2 + 4, _short(line.label, left), anchor="end", size=12)
        cells = {one.point.threads: one for one in line.members}
        for column, count in enumerate(counts):
            x = left + width * column
            metric = cells[count].metric(_METRIC) if count in cells else None
            if metric is None:
                canvas.rectangle(x, y, width - _GAP_PX, _CELL_PX, palette.grid, opacity=0.5)
                words = "not run" if count not in cells else "no power"
                canvas.text(x + width / 2, y + _CELL_PX / 2 + 4, words, colour=palette.muted, anchor="middle", size=12)
                continue
            top = best[metric.provenance]
            share = metric.value / top if top > 0 else 0.0
            edge = palette.ink if metric.value == top else "none"
            canvas.rectangle(x, y, width - _GAP_PX, _CELL_PX, palette.series[0], opacity=_STRONGEST * share, edge=edge)
            text = figure_text(metric)
            centre = x + (width - _GAP_PX) / 2
            canvas.text(centre, y + (20 if text.up else 28), text.value, anchor="middle", bold=True)
            if text.up:
                spread = f"± {text.up}" if text.up == text.down else f"+{text.up} −{text.down}"
                canvas.text(centre, y + 36, spread, anchor="middle", size=11)
    words = f"img/s/W ({provenance_words(summaries, _METRIC)})"
    canvas.text(left, canvas.height - 10, words, colour=palette.muted, size=12)
    return canvas.document(alt(summaries))


def alt(summaries: Sequence[PointSummary]) -> str:
    """Return what the picture shows."""
    return f"Efficiency in img/s/W of {len(summaries)} points over {len(thread_counts(summaries))} thread counts."


def _short(label: str, left: float) -> str:
    most = int((left - 12) / text_width("x", 12))
    return label if len(label) <= most else f"{label[: most - 1]}…"


DRAWING = Drawing(
    name="efficiency-heatmap",
    title="Efficiency by threads",
    caption=(
        "Images per second per watt, which equals images per joule, with its 95 % interval. A stronger colour is "
        "better; the best cell of each provenance is outlined."
    ),
    needs=_NEEDS,
    draw=draw,
    alt=alt,
)
