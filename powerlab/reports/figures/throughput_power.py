"""Throughput against power, both with intervals, and the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from powerlab.analysis.best import pareto_front
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab.reports.figures.base import Drawing
from powerlab.reports.figures.frame import WIDTH, frame
from powerlab.reports.figures.palette import Palette
from powerlab.reports.figures.series import hollow, provenance_words, series_of
from powerlab.reports.figures.svg import Canvas, text_width

_NEEDS = ("power_w", "throughput_img_per_s")
_POWER, _THROUGHPUT = _NEEDS


def draw(summaries: Sequence[PointSummary], palette: Palette) -> str:
    """Draw the points that have both figures; there is at least one."""
    series = series_of(summaries)
    shown = [one for one in summaries if all(one.metric(name) is not None for name in _NEEDS)]
    plot = frame(
        palette,
        series,
        x_title=f"power, W ({provenance_words(shown, _POWER)})",
        y_title=f"throughput, img/s ({provenance_words(shown, _THROUGHPUT)})",
        x_end=max(_end(one.metric(_POWER)) for one in shown),
        y_end=max(_end(one.metric(_THROUGHPUT)) for one in shown),
        extra=["Pareto front"],
    )
    canvas, x, y = plot.canvas, plot.x, plot.y
    if x is None:
        raise ValueError("the frame has a numeric x axis")

    def place(summary: PointSummary) -> tuple[float, float]:
        return x.at(_value(summary, _POWER)), y.at(_value(summary, _THROUGHPUT))

    front = pareto_front(shown)
    by_provenance = sorted(front, key=_provenance)
    for _, joined in groupby(by_provenance, key=_provenance):
        canvas.polyline(map(place, joined), palette.muted, width=1.2, dash="3 3")
    for one in series:
        for summary in one.members:
            power, throughput = summary.metric(_POWER), summary.metric(_THROUGHPUT)
            if power is None or throughput is None:
                continue
            across, up = place(summary)
            plot.interval_across(up, power, palette.colour(one.index))
            plot.interval(across, throughput, palette.colour(one.index))
            canvas.marker(one.index, across, up, palette.colour(one.index), hollow=hollow(summary, _POWER))
    _label(plot.canvas, [(summary, place(summary)) for summary in front])
    return canvas.document(alt(summaries))


def alt(summaries: Sequence[PointSummary]) -> str:
    """Return what the picture shows."""
    shown = [one for one in summaries if all(one.metric(name) is not None for name in _NEEDS)]
    return f"Throughput in img/s against power in W of {len(shown)} points; {len(pareto_front(shown))} on the front."


def _label(canvas: Canvas, placed: Sequence[tuple[PointSummary, tuple[float, float]]]) -> None:
    """Write thread counts beside the points of the front, from the fastest down, where they do not overlap."""
    written: list[tuple[float, float]] = []
    for summary, (across, up) in reversed(placed):
        words = "1 thread" if summary.point.threads == 1 else f"{summary.point.threads} threads"
        if all(abs(across - x) > text_width(words, 12) or abs(up - y) > 16 for x, y in written):
            fits = across + 12 + text_width(words, 12) < WIDTH
            canvas.text(
                across + (9 if fits else -9), up - 8, words, colour=canvas.palette.muted,
                anchor="start" if fits else "end", size=12,
            )  # fmt: skip
            written.append((across, up))


def _value(summary: PointSummary, name: str) -> float:
    metric = summary.metric(name)
    return 0.0 if metric is None else metric.value


def _provenance(summary: PointSummary) -> str:
    metric = summary.metric(_POWER)
    return "" if metric is None else metric.provenance.value


def _end(metric: Metric | None) -> float:
    if metric is None:
        return 0.0
    return metric.value if metric.high is None else metric.high


DRAWING = Drawing(
    name="throughput-power",
    title="Throughput against power",
    caption=(
        "Up and to the left is better. Bars are 95 % intervals; hollow markers: the power was not measured. No point "
        "beats one on the Pareto front in both quantities."
    ),
    needs=_NEEDS,
    draw=draw,
    alt=alt,
)
