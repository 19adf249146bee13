"""The points of a scatter: which colour and marker a power mode and a batch size have, and the legend that says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.theme import SYMBOLS, Theme
from powerlab_dashboards.format import shown

Placed = tuple[PointSummary, Metric, Metric]
"""A summary with its power and its throughput, both there."""


class PointSeries:
    """The points by power mode and batch size: with several modes the colour is the mode's, else the batch size's."""

    def __init__(self, theme: Theme, modes: list[str], batches: list[int]) -> None:
        self._theme, self._modes, self._batches = theme, modes, batches

    def keys(self) -> list[dict[str, Any]]:
        """Return traces that hold no point but an entry of the legend each."""
        modes, batches = self._modes, self._batches
        if len(batches) == 1:
            keys = [
                self._key(plain(mode), self._colour(mode, batches[0]), self._symbol(mode, batches[0])) for mode in modes
            ]
        else:
            several = len(modes) > 1
            keys = [self._key(plain(mode), self._colour(mode, batches[0]), SYMBOLS[0]) for mode in modes if several]
            for batch in batches:
                colour = self._theme.muted if several else self._colour(modes[0], batch)
                keys.append(self._key(f"batch {batch}", colour, self._symbol(modes[0], batch)))
        line = {"color": self._theme.muted, "width": 1.2, "dash": "dot"}
        pareto = {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": "Pareto line", "line": line}
        return [*keys, pareto]

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

    def _key(self, name: str, colour: str, symbol: str) -> dict[str, Any]:
        marker = {"size": 9, "color": colour, "symbol": symbol}
        return {"type": "scatter", "mode": "markers", "x": [None], "y": [None], "name": name, "legendgroup": name,
                "marker": marker}  # fmt: skip

    def _trace(self, mode: str, batch: int, found: list[Placed], named: set[str]) -> dict[str, Any]:
        colour, symbol = self._colour(mode, batch), self._symbol(mode, batch)
        return {
            "type": "scatter",
            "mode": "markers+text",
            "name": f"{plain(mode)}, batch {batch}",
            "legendgroup": plain(mode) if len(self._modes) > 1 or len(self._batches) == 1 else f"batch {batch}",
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
