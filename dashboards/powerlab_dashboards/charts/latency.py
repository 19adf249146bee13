"""Latency percentiles of every point with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.look import error_bars, series_key
from powerlab_dashboards.charts.theme import SYMBOLS, Theme, View
from powerlab_dashboards.charts.words import no_figures, provenance_words
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.places import naming, point_words

PERCENTILES = {"latency_p50_ms": "p50", "latency_p90_ms": "p90", "latency_p99_ms": "p99"}
MOST_POINTS = 30
_ROW_PX = 22
_LOG_FROM = 20.0
"""Latencies that differ by more than this factor are drawn on a logarithmic scale."""
_LONGEST_NAME = 46
_LONGEST_NARROW = 26


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return a row for each point, the fastest on top; of many points only the fastest."""
    found = [(summary, metric) for summary in summaries if (metric := summary.metric("latency_p50_ms")) is not None]
    if not found:
        return NoChart(no_figures(summaries))
    rows = [summary for summary, _ in sorted(found, key=lambda entry: entry[1].value)]
    drawn, theme = rows[:MOST_POINTS], view.theme
    data = [
        trace
        for index, name in enumerate(PERCENTILES)
        if (trace := _percentile(theme, drawn, name, index, view.choice)) is not None
    ]
    keys = [series_key(trace["name"], theme.colour(index), SYMBOLS[index]) for index, trace in enumerate(data)]
    legend, legend_px = legend_above([trace["name"] for trace in data], narrow=view.narrow)
    margin = {"l": 16, "r": 24, "t": legend_px + 12, "b": 64}
    most = (
        ", " + _("the %(drawn)s fastest of %(all)s points", drawn=len(drawn), all=len(rows))
        if len(rows) > len(drawn)
        else ""
    )
    values = [value for trace in data for value in trace["x"]]
    log = min(values) > 0 and max(values) > _LOG_FROM * min(values)
    words = provenance_words(drawn, "latency_p50_ms")
    named = naming(summary.point for summary in rows)
    return {
        "data": [*keys, _spans(theme, drawn), *data],
        "layout": layout(
            theme,
            height=_ROW_PX * len(drawn) + margin["t"] + margin["b"],
            margin=margin,
            showlegend=True,
            hovermode="closest",
            legend=legend,
            xaxis=axis(
                theme, f"{_('Latency')}, ms ({words}){most}",
                **({"type": "log", **_log_ticks(min(values), max(values))} if log else {"rangemode": "tozero"}),
            ),
            yaxis=axis(
                theme, "", tickvals=list(range(len(drawn))),
                ticktext=[_short(named(summary.point), narrow=view.narrow) for summary in drawn],
                range=[len(drawn) - 0.4, -0.6], showgrid=False, fixedrange=True,
            ),
        ),
    }  # fmt: skip


def _log_ticks(low: float, high: float) -> dict[str, Any]:
    """Return ticks at 1, 2 and 5 of every decade in full figures: Plotly's own say "2" where 200 is meant."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    return {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def _percentile(
    theme: Theme, drawn: Sequence[PointSummary], name: str, index: int, choice: Choice
) -> dict[str, Any] | None:
    found = [(place, summary, metric) for place, summary in enumerate(drawn) if (metric := summary.metric(name))]
    if not found:
        return None
    colour = theme.colour(index)
    barred = [summary.point.id in choice.barred for _, summary, _ in found]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": PERCENTILES[name],
        "legendgroup": PERCENTILES[name],
        "showlegend": False,
        "x": [metric.value for _, _, metric in found],
        "y": [place for place, _, _ in found],
        "error_x": error_bars([metric for _, _, metric in found], colour),
        "marker": {
            "size": 8,
            "color": [theme.line if one else colour for one in barred] if any(barred) else colour,
            "symbol": SYMBOLS[index],
        },
        "customdata": [[_hover(one, metric, name), choice.address(one.point.id)] for _, one, metric in found],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }  # fmt: skip


def _spans(theme: Theme, drawn: Sequence[PointSummary]) -> dict[str, Any]:
    """Return faint lines from each point's lowest to its highest percentile."""
    x: list[float | None] = []
    y: list[float | None] = []
    for place, summary in enumerate(drawn):
        values = [metric.value for name in PERCENTILES if (metric := summary.metric(name))]
        x += [min(values), max(values), None]
        y += [place, place, None]
    line = {"color": theme.line, "width": 1.5}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip", "showlegend": False}


def _hover(summary: PointSummary, metric: Metric, name: str) -> str:
    text = shown(metric)
    return (
        f"<b>{PERCENTILES[name]} {text.sentence}</b> {_(text.provenance)}<br>{text.interval}<br>"
        f"{plain(point_words(summary.point))}"
    )


def _short(name: str, *, narrow: bool) -> str:
    most = _LONGEST_NARROW if narrow else _LONGEST_NAME
    return plain(name if len(name) <= most else f"{name[: most - 1]}…")


CHART = Chart(
    name="latency",
    title=mark("Latency"),
    caption=mark(
        "Median, 90th and 99th percentile of each point, the fastest on top; error bars are 95 % intervals. A long "
        "line means a long tail."
    ),
    build=build,
)
