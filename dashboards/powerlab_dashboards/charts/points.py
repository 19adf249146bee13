"""Points of the throughput-power scatter plot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.look import Look, error_bars
from powerlab_dashboards.format import count, shown

Placed = tuple[PointSummary, Metric, Metric]
"""A summary with its power and throughput."""


def point_traces(look: Look, members: Sequence[Placed], named: set[str], place: dict[str, str]) -> list[dict[str, Any]]:
    """Return the points of one panel; those in ``named`` are labelled with their thread count."""
    return [
        _trace(look, mode, batch, found, named) | place
        for mode, batch in look.series()
        if (found := [e for e in members if e[0].point.mode == mode and e[0].point.workload.batch_size == batch])
    ]


def _trace(look: Look, mode: str, batch: int, found: list[Placed], named: set[str]) -> dict[str, Any]:
    colour, symbol = look.colour(mode, batch), look.symbol(mode, batch)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": f"{plain(mode)}, batch {batch}",
        "legendgroup": look.group(mode, batch),
        "showlegend": False,
        "x": [power.value for _, power, _ in found],
        "y": [throughput.value for _, _, throughput in found],
        "error_x": error_bars([power for _, power, _ in found], colour),
        "error_y": error_bars([throughput for _, _, throughput in found], colour),
        "text": [f"{e[0].point.threads} thr" if e[0].point.id in named else "" for e in found],
        "textposition": "top left",
        "textfont": {"size": 11, "color": look.theme.muted},
        "cliponaxis": False,
        "marker": {
            "size": 9,
            "color": colour,
            "line": {"width": 1.5, "color": colour},
            "symbol": [symbol + _hollow(power.provenance) for _, power, _ in found],
        },
        "customdata": [_hover(*entry) for entry in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _hollow(provenance: Provenance) -> str:
    return "" if provenance is Provenance.MEASURED else "-open"


def _hover(summary: PointSummary, power: Metric, throughput: Metric) -> str:
    point = summary.point
    lines = [
        f"<b>{plain(point.mode)}, {count(point.threads, 'thread')}, batch {point.workload.batch_size}</b>",
        f"{shown(throughput).sentence}",
        f"{shown(power).sentence} {power.provenance.value}",
    ]
    if efficiency := summary.metric("efficiency_img_per_s_per_w"):
        lines.append(f"{shown(efficiency).sentence} {efficiency.provenance.value}")
    return "<br>".join([*lines, f"{summary.valid_count} of {summary.run_count} runs valid"])
