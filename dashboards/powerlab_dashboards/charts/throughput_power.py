"""Throughput against power: every point with its intervals, the Pareto line, and lines of equal efficiency."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from powerlab.analysis.best import pareto_front
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title, plain
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.theme import SYMBOLS, Theme, View
from powerlab_dashboards.charts.words import missing_power, provenance_words
from powerlab_dashboards.format import model_label, shown

_PANEL_PX = 360
_GUIDE_COUNT = 3
Placed = tuple[PointSummary, Metric, Metric]
"""A summary with its power and its throughput, both there."""


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return one scatter a model; colour and marker mean power mode and batch size, hollow means not measured."""
    placed = [
        (summary, power, throughput)
        for summary in summaries
        if (power := summary.metric("power_w")) and (throughput := summary.metric("throughput_img_per_s"))
    ]
    if not placed:
        return NoChart(missing_power(summaries))
    theme, words = view.theme, provenance_words(summaries, "power_w")
    models = list(dict.fromkeys(summary.point.workload.model for summary, _, _ in placed))
    modes = list(dict.fromkeys(summary.point.mode for summary, _, _ in placed))
    batches = sorted({summary.point.workload.batch_size for summary, _, _ in placed})
    grid = Grid.of(len(models), narrow=view.narrow, row_px=_PANEL_PX, gap_px=104)
    series = _Series(theme, modes, batches)
    data = series.keys()
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
        data += [*guides, _pareto_line(theme, front, place), *series.traces(members, named, place)]
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
    """Return the points whose labels do not run into another's, from the fastest down; ``gap`` is a part of a panel."""
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


class _Series:
    """The points by power mode and batch size: with several modes the colour is the mode's, else the batch size's."""

    def __init__(self, theme: Theme, modes: list[str], batches: list[int]) -> None:
        self._theme, self._modes, self._batches = theme, modes, batches

    def keys(self) -> list[dict[str, Any]]:
        """Return traces that hold no point but an entry of the legend each."""
        keys = [self._key(plain(mode), self._colour(mode, self._batches[0]), "circle", mode) for mode in self._modes]
        if len(self._batches) > 1:
            keys += [
                self._key(f"batch {batch}", self._theme.muted, self._symbol(self._modes[0], batch), f"batch {batch}")
                for batch in self._batches
            ]
        line = {"color": self._theme.muted, "width": 1.2, "dash": "dot"}
        return [
            *keys,
            {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": "Pareto line", "line": line},
        ]

    def traces(self, members: Sequence[Placed], named: set[str], place: dict[str, str]) -> list[dict[str, Any]]:
        """Return the points of one panel; those in ``named`` say their thread count."""
        return [
            self._trace(mode, batch, found, named) | place
            for mode in self._modes
            for batch in self._batches
            if (found := [e for e in members if e[0].point.mode == mode and e[0].point.workload.batch_size == batch])
        ]

    def _colour(self, mode: str, batch: int) -> str:
        by_mode = len(self._modes) > 1
        return self._theme.colour(self._modes.index(mode) if by_mode else self._batches.index(batch))

    def _symbol(self, mode: str, batch: int) -> str:
        by_batch = len(self._batches) > 1
        return SYMBOLS[(self._batches.index(batch) if by_batch else self._modes.index(mode)) % len(SYMBOLS)]

    def _key(self, name: str, colour: str, symbol: str, group: str) -> dict[str, Any]:
        if len(self._batches) == 1:
            symbol = self._symbol(group, self._batches[0])
        marker = {"size": 9, "color": colour, "symbol": symbol}
        return {"type": "scatter", "mode": "markers", "x": [None], "y": [None], "name": name, "legendgroup": group,
                "marker": marker}  # fmt: skip

    def _trace(self, mode: str, batch: int, found: list[Placed], named: set[str]) -> dict[str, Any]:
        colour, symbol = self._colour(mode, batch), self._symbol(mode, batch)
        return {
            "type": "scatter",
            "mode": "markers+text",
            "name": f"{plain(mode)}, batch {batch}",
            "legendgroup": mode,
            "showlegend": False,
            "x": [power.value for _, power, _ in found],
            "y": [throughput.value for _, _, throughput in found],
            "error_x": _error_bars([power for _, power, _ in found], colour),
            "error_y": _error_bars([throughput for _, _, throughput in found], colour),
            "text": [f"{e[0].point.threads} thr" if e[0].point.id in named else "" for e in found],
            "textposition": "top left",
            "textfont": {"size": 11, "color": self._theme.muted},
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


def _error_bars(metrics: list[Metric], colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if metric.high is None else metric.high - metric.value for metric in metrics],
        "arrayminus": [0.0 if metric.low is None else metric.value - metric.low for metric in metrics],
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _hover(summary: PointSummary, power: Metric, throughput: Metric) -> str:
    point = summary.point
    lines = [
        f"<b>{plain(point.mode)}, {point.threads} threads, batch {point.workload.batch_size}</b>",
        f"{shown(throughput).sentence}",
        f"{shown(power).sentence} {power.provenance.value}",
    ]
    if efficiency := summary.metric("efficiency_img_per_s_per_w"):
        lines.append(f"{shown(efficiency).sentence} {efficiency.provenance.value}")
    return "<br>".join([*lines, f"{summary.valid_count} of {summary.run_count} runs valid"])


def _pareto_line(theme: Theme, front: Sequence[Placed], place: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto line",
        "showlegend": False,
        "x": [power.value for _, power, _ in front],
        "y": [throughput.value for _, _, throughput in front],
        "line": {"color": theme.muted, "width": 1.2, "dash": "dot"},
        "hoverinfo": "skip",
        **place,
    }


def _end(metrics: Iterable[Metric]) -> float:
    return 1.15 * max(metric.value if metric.high is None else metric.high for metric in metrics)


def _guides(
    theme: Theme, members: Sequence[Placed], x_end: float, y_end: float, place: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return faint lines of equal img/s/W through the origin, and their labels where they leave the panel."""
    best = max(throughput.value / power.value for _, power, throughput in members)
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
        "Up and to the left is better. Bars are 95 % intervals; hollow markers are power figures that were not "
        "measured. No point beats one on the Pareto line in both; faint lines join equal img/s/W."
    ),
    build=build,
)
