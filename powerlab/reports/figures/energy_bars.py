"""Energy per image as bars: what the load costs above idle, and what the idle device costs meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab.reports.figures.base import Drawing
from powerlab.reports.figures.frame import WIDTH
from powerlab.reports.figures.palette import Palette
from powerlab.reports.figures.scale import Scale, tick_text, ticks
from powerlab.reports.figures.series import point_labels, provenance_words
from powerlab.reports.figures.svg import Canvas, text_width
from powerlab.reports.text import figure_text

_NEEDS = ("energy_per_image_j",)
MOST = 24
"""Bars; of more points those of least energy are shown."""
_WHOLE, _ABOVE = "energy_per_image_j", "energy_above_idle_per_image_j"
_BAR_PX, _ROW_PX = 15.0, 24.0
_WIDEST_LABEL, _FIGURE_PX = 210.0, 104.0
_PALE = 0.35


def draw(summaries: Sequence[PointSummary], palette: Palette) -> str:
    """Draw a bar for each point that has the figure; there is at least one."""
    named = point_labels(summary.point for summary in summaries)
    shown = _shown(summaries)
    left = min(_WIDEST_LABEL, max(text_width(named(summary.point), 12) for summary, _ in shown) + 14)
    canvas = Canvas(WIDTH, 14 + _ROW_PX * len(shown) + 48, palette)
    bottom = canvas.height - 46
    steps = ticks(max(metric.value if metric.high is None else metric.high for _, metric in shown), 5)
    x = Scale(end=steps[-1], first=left, last=WIDTH - _FIGURE_PX)
    for step in steps:
        canvas.line(x.at(step), 8, x.at(step), bottom, palette.line if step == 0 else palette.grid)
        label = tick_text(step, steps[1])
        canvas.text(x.at(step), bottom + 17, label, colour=palette.muted, anchor="middle", size=12)
    words = f"energy per image, J ({provenance_words(summaries, _WHOLE)})"
    canvas.text(
        (left + WIDTH - _FIGURE_PX) / 2, canvas.height - 8, words, colour=palette.muted, anchor="middle", size=12
    )
    for row, (summary, metric) in enumerate(shown):
        y = 14 + _ROW_PX * row
        _bar(canvas, x, y, metric, summary.metric(_ABOVE))
        label = named(summary.point)
        most = int((left - 10) / text_width("x", 12))
        label = label if len(label) <= most else f"{label[: most - 1]}…"
        canvas.text(left - 8, y + _BAR_PX - 3, label, anchor="end", size=12)
        canvas.text(WIDTH - 4, y + _BAR_PX - 3, figure_text(metric).plain, anchor="end", size=12)
    return canvas.document(alt(summaries))


def _bar(canvas: Canvas, x: Scale, y: float, whole: Metric, above: Metric | None) -> None:
    palette, colour = canvas.palette, canvas.palette.series[0]
    canvas.rectangle(x.first, y, x.at(whole.value) - x.first, _BAR_PX, colour, opacity=_PALE if above else 1.0)
    if above is not None:
        canvas.rectangle(x.first, y, x.at(above.value) - x.first, _BAR_PX, colour)
    if whole.low is not None and whole.high is not None:
        low, high, middle = x.at(whole.low), x.at(whole.high), y + _BAR_PX / 2
        canvas.line(low, middle, high, middle, palette.ink, width=1.2)
        for end in (low, high):
            canvas.line(end, middle - 3.5, end, middle + 3.5, palette.ink, width=1.2)


def _shown(summaries: Sequence[PointSummary]) -> list[tuple[PointSummary, Metric]]:
    found = [(one, metric) for one in summaries if (metric := one.metric(_WHOLE)) is not None]
    return found if len(found) <= MOST else sorted(found, key=lambda entry: entry[1].value)[:MOST]


def alt(summaries: Sequence[PointSummary]) -> str:
    """Return what the picture shows."""
    shown = len(_shown(summaries))
    of = f"the {shown} points of least energy" if shown < len(summaries) else f"{shown} points"
    return f"Energy per image in J of {of}, the part above idle marked."


DRAWING = Drawing(
    name="energy-bars",
    title="Energy per image",
    caption=(
        "Lower is better. The strong part is the energy above idle, the pale part what the device takes anyway; lines "
        "are 95 % intervals of the whole."
    ),
    needs=_NEEDS,
    draw=draw,
    alt=alt,
)
