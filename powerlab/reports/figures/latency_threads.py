"""Latency by threads: medians with intervals, and the 99th percentile above them."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab.reports.figures.base import Drawing
from powerlab.reports.figures.frame import INNER_PX, frame
from powerlab.reports.figures.palette import Palette
from powerlab.reports.figures.series import hollow, provenance_words, series_of, thread_counts

_NEEDS = ("latency_p50_ms",)
_MEDIAN, _TAIL = "latency_p50_ms", "latency_p99_ms"
_SPREAD = 10.0
"""Px between two series at one thread count, at most."""


def draw(summaries: Sequence[PointSummary], palette: Palette) -> str:
    """Draw the points that have a latency; there is at least one."""
    series, counts = series_of(summaries), thread_counts(summaries)
    plot = frame(
        palette,
        series,
        x_title="threads",
        y_title=f"latency, ms ({provenance_words(summaries, _MEDIAN)})",
        y_end=max(_end(metric) for one in summaries for name in (_MEDIAN, _TAIL) if (metric := one.metric(name))),
        categories=[str(count) for count in counts],
    )
    spread = min(_SPREAD, 0.8 * INNER_PX / (len(counts) * len(series)))
    for one in series:
        colour, aside = palette.colour(one.index), spread * (one.index - (len(series) - 1) / 2)
        placed = [
            (summary, metric, plot.categories[counts.index(summary.point.threads)] + aside)
            for summary in one.members
            if (metric := summary.metric(_MEDIAN)) is not None
        ]
        plot.canvas.polyline([(x, plot.y.at(metric.value)) for _, metric, x in placed], colour)
        for summary, metric, x in placed:
            tail = summary.metric(_TAIL)
            if tail is not None:
                plot.canvas.line(x - 5, plot.y.at(tail.value), x + 5, plot.y.at(tail.value), colour, width=2)
            plot.interval(x, metric, colour)
            plot.canvas.marker(one.index, x, plot.y.at(metric.value), colour, hollow=hollow(summary, _MEDIAN))
    return plot.canvas.document(alt(summaries))


def alt(summaries: Sequence[PointSummary]) -> str:
    """Return what the picture shows."""
    return f"Median and 99th percentile latency in ms over {len(thread_counts(summaries))} thread counts."


def _end(metric: Metric) -> float:
    return metric.value if metric.high is None else metric.high


DRAWING = Drawing(
    name="latency-threads",
    title="Latency by threads",
    caption=(
        "Markers are medians with their 95 % intervals, the dash above each is the 99th percentile. Lower is better."
    ),
    needs=_NEEDS,
    draw=draw,
    alt=alt,
)
