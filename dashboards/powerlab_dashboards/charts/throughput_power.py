"""Throughput against power: points with intervals, the Pareto front, and lines of equal efficiency."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from powerlab.analysis.best import pareto_front
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.look import Look
from powerlab_dashboards.charts.points import Placed, point_traces
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.charts.words import missing_power, provenance_words
from powerlab_dashboards.format import model_label

_PANEL_PX = 360
_GUIDE_COUNT = 3
_LEAST_SLOPE = 1e-300


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return one scatter plot per model; colour and marker encode mode and batch size, hollow means not measured."""
    placed = [
        (summary, power, throughput)
        for summary in summaries
        if (power := summary.metric("power_w")) and (throughput := summary.metric("throughput_img_per_s"))
    ]
    if not placed:
        return NoChart(missing_power(summaries))
    theme, words = view.theme, provenance_words(summaries, "power_w")
    models = list(dict.fromkeys(summary.point.workload.model for summary, _, _ in placed))
    grid = Grid.of(len(models), narrow=view.narrow, row_px=_PANEL_PX, gap_px=104)
    look = Look(theme, [summary for summary, _, _ in placed])
    line = {"color": theme.muted, "width": 1.2, "dash": "dot"}
    pareto = {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": "Pareto front", "line": line}
    data = [*look.keys(), pareto]
    legend, legend_px = legend_above([key["name"] for key in data], narrow=view.narrow)
    margin = {"l": 64, "r": 24, "t": legend_px + 36, "b": 56}
    figure_layout = layout(
        theme,
        height=grid.height_px(margin),
        margin=margin,
        annotations=[],
        showlegend=True,
        hovermode="closest",
        legend=legend,
    )
    for index, model in enumerate(models):
        suffix = "" if index == 0 else str(index + 1)
        x_domain, y_domain = grid.domains(index)
        members = [entry for entry in placed if entry[0].point.workload.model == model]
        x_end, y_end = _end(entry[1] for entry in members), _end(entry[2] for entry in members)
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        front = _front(members)
        named = _spaced(front, x_end, y_end, gap=0.11 if view.narrow else 0.07)
        guides, labels = _guides(theme, members, x_end, y_end, place)
        data += [*guides, *_pareto_lines(theme, front, place), *point_traces(look, members, named, place)]
        figure_layout["annotations"] += [panel_title(theme, model_label(model), x=x_domain[0], y=y_domain[1]), *labels]
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, f"power, W ({words})", domain=x_domain, anchor=f"y{suffix}", range=[0, x_end]
        )
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, "throughput, img/s", domain=y_domain, anchor=f"x{suffix}", range=[0, y_end]
        )
    return {"data": data, "layout": figure_layout}


def _front(members: Sequence[Placed]) -> list[Placed]:
    by_point = {entry[0].point.id: entry for entry in members}
    return [by_point[summary.point.id] for summary in pareto_front([summary for summary, _, _ in members])]


def _spaced(front: Sequence[Placed], x_end: float, y_end: float, *, gap: float) -> set[str]:
    """Return the points whose labels do not overlap, from the fastest down; ``gap`` is a fraction of the panel."""
    named: list[Placed] = []
    for entry in reversed(front):
        apart = (
            abs(entry[1].value - other[1].value) > 1.5 * gap * x_end
            or abs(entry[2].value - other[2].value) > gap * y_end
            for other in named
        )
        if all(apart):
            named.append(entry)
    return {summary.point.id for summary, _, _ in named}


def _pareto_lines(theme: Theme, front: Sequence[Placed], place: dict[str, str]) -> list[dict[str, Any]]:
    """Return one line per provenance: figures of different provenance are never joined."""
    by_provenance: dict[Provenance, list[Placed]] = {}
    for entry in front:
        by_provenance.setdefault(entry[1].provenance, []).append(entry)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"Pareto front, {provenance.value}",
            "showlegend": False,
            "x": [power.value for _, power, _ in entries],
            "y": [throughput.value for _, _, throughput in entries],
            "line": {"color": theme.muted, "width": 1.2, "dash": "dot"},
            "hoverinfo": "skip",
            **place,
        }
        for provenance, entries in by_provenance.items()
    ]


def _end(metrics: Iterable[Metric]) -> float:
    return 1.15 * max(metric.value if metric.high is None else metric.high for metric in metrics) or 1.0


def _guides(
    theme: Theme, members: Sequence[Placed], x_end: float, y_end: float, place: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return faint lines of equal img/s/W through the origin, with labels at the panel's edge."""
    # The store accepts a device's figures unchanged, including 0 W, for which there is no line.
    best = max((throughput.value / power.value for _, power, throughput in members if power.value > 0), default=0.0)
    if not _LEAST_SLOPE < best < math.inf:
        return [], []
    lines, labels = [], []
    for slope in (_round_down(best) / 2**step for step in range(_GUIDE_COUNT)):
        x, y = min(x_end, y_end / slope), min(y_end, x_end * slope)
        lines.append(
            {"type": "scatter", "mode": "lines", "x": [0, x], "y": [0, y], "showlegend": False, "hoverinfo": "skip",
             "line": {"color": theme.grid, "width": 1}, **place}
        )  # fmt: skip
        leaves_top = y_end / slope < x_end
        labels.append(
            {"text": f"{slope:.3g} img/s/W", "x": x, "y": y, "xref": place["xaxis"], "yref": place["yaxis"],
             "showarrow": False, "xanchor": "right", "yanchor": "top" if leaves_top else "bottom",
             "xshift": -6 if leaves_top else 0, "font": {"size": 10, "color": theme.muted}}
        )  # fmt: skip
    return lines, labels


def _round_down(value: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above ``value``."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in (5, 2, 1) if step * decade <= value * (1 + 1e-9))


CHART = Chart(
    name="throughput-power",
    title="Throughput against power",
    caption=(
        "Up and to the left is better. Error bars are 95 % intervals; hollow markers mean the power was not measured. "
        "No point beats one on the Pareto front in both quantities. Faint lines mark equal img/s/W."
    ),
    build=build,
)
