"""The table of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Protocol

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from powerlab.analysis.best import best_points
from powerlab.analysis.dimensions import shown
from powerlab.analysis.rounding import interval_decimals, lopsided, significant_decimals
from powerlab.analysis.summary import PointSummary
from powerlab.domain.model_name import short
from powerlab.domain.workload import Scenario

ABSENT = "–"
BEST = "*"
_LEFT = frozenset(
    {
        *("model", "workload", "optimizer", "engine", "processor", "precision", "scenario", "preparation"),
        *("recompute", "cores", "mode"),
    }
)
_CAPTION = "± is the 95 % interval, * marks the best of its column"
_COLUMNS: tuple[tuple[str, str], ...] = (
    ("p50 ms", "latency_p50_ms"),
    ("p90 ms", "latency_p90_ms"),
    ("p99 ms", "latency_p99_ms"),
    ("queries/s", "server_queries_per_s"),
    ("img/s", "throughput_img_per_s"),
    ("W", "power_w"),
    ("img/s/W", "efficiency_img_per_s_per_w"),
    ("SQNR dB", "output_sqnr_db"),
    ("top-1 %", "top1_agreement_percent"),
    ("right %", "top1_accuracy_percent"),
)
_SPARED = ("p90 ms", "p99 ms")
_FOLDED = 12
"""Longer words of columns without figures, such as names of modes, go on below."""
_WHERE_THERE = frozenset({"output_sqnr_db", "top1_agreement_percent", "top1_accuracy_percent"})
"""Columns of sweeps in which a point has the figure: it compares a low precision with fp32, or answers with labels."""
# The 90th and 99th percentile share the provenance of the median beside them; their intervals are in the JSON.
_WITH_INTERVAL = frozenset(
    {"latency_p50_ms", "server_queries_per_s", "throughput_img_per_s", "power_w", "efficiency_img_per_s_per_w"}
)


def format_number(value: float, digits: int) -> str:
    """Return a number with ``digits`` significant digits, never in scientific notation."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{significant_decimals(value, digits)}f}"


class Figure(Protocol):
    """A value with its 95 % interval: a metric, or a value computed from one."""

    @property
    def value(self) -> float:
        """The figure."""

    @property
    def low(self) -> float | None:
        """The lower end; None without an interval."""

    @property
    def high(self) -> float | None:
        """The upper end."""


def format_figure(metric: Figure | None, *, interval: bool = True) -> str:
    """Return ``value ±half-width`` of the 95 % interval, or ``value +up/-down`` if it is lopsided.

    The wider side has two significant digits, and the value ends at the same place.
    """
    if metric is None:
        return ABSENT
    if not interval or metric.low is None or metric.high is None:
        return format_number(metric.value, 4)
    up, down = metric.high - metric.value, metric.value - metric.low
    places = interval_decimals(max(up, down))
    if places is None:
        return f"{format_number(metric.value, 4)} ±0"
    value = f"{metric.value:.{places}f}"
    if lopsided(down, up):
        return f"{value} +{up:.{places}f}/-{down:.{places}f}"
    return f"{value} ±{max(up, down):.{places}f}"


def sweep_table(summaries: Sequence[PointSummary], width: int | None = None) -> Table:
    """Return the table of a sweep: one row per point, the best figures marked, provenance below the unit.

    In a column of mixed provenance each figure has its own. On a terminal of too few columns (``width``) intervals wrap
    to a second line, and if that is not enough, the percentiles above the median are left out, which the caption says;
    figures are never cut.
    """
    models = list(dict.fromkeys(summary.point.workload.model for summary in summaries))
    title = Text(short(models[0])) if len(models) == 1 else None
    table = Table(title=title, caption=_CAPTION, caption_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=0)
    marked = {
        (best.metric.name, best.summary.point.id) for best in best_points(summaries) if best.runner_up is not None
    }
    columns = [
        (dimension.title, [dimension.read(summary.point) for summary in summaries])
        for dimension in shown(summary.point for summary in summaries)
    ]
    scenarios = {summary.point.workload.scenario for summary in summaries}
    columns += [
        _figure_column(header, name, summaries, marked)
        for header, name in _COLUMNS
        if _belongs(name, scenarios)
        and (name not in _WHERE_THERE or any(summary.metric(name) is not None for summary in summaries))
    ]
    columns.append(("valid", [f"{one.valid_count}/{one.run_count}" for one in summaries]))
    if title is not None:
        del columns[0]
    hidden = [] if width is None else _without_room(columns, width)
    if hidden:
        table.caption = f"{_CAPTION}; a wider terminal shows {' and '.join(hidden)}"
    columns = [column for column in columns if column[0] not in hidden]
    for header, cells in columns:
        left = header in _LEFT
        least = None if left else _least(header, cells)
        table.add_column(header, justify="left" if left else "right", min_width=least, overflow="fold")
    for row in zip(*(cells for _, cells in columns), strict=True):
        style = "bold" if any(cell.startswith(BEST) for cell in row) else ""
        table.add_row(*(Text(cell) for cell in row), style=style)
    return table


def _least(header: str, cells: Sequence[str]) -> int:
    """Return the width of the longest word of a column."""
    return max(len(word) for text in (header, *cells) for word in text.split())


def _without_room(columns: Sequence[tuple[str, Sequence[str]]], width: int) -> list[str]:
    """Return which of the columns that can be spared have no room, the first to go first."""
    least = {header: _least(header, cells) + 1 for header, cells in columns}  # and a blank behind it
    least |= {header: min(least[header], _FOLDED) for header in least.keys() & _LEFT}
    hidden: list[str] = []
    for header in _SPARED:
        if header in least and sum(least.values()) - 1 > width:
            del least[header]
            hidden.append(header)
    return hidden


def _belongs(name: str, scenarios: Set[Scenario]) -> bool:
    """Whether one of the scenarios has the metric: queries/s belong to server, and latency not to offline."""
    if name == "server_queries_per_s":
        return Scenario.SERVER in scenarios
    return not name.startswith("latency") or scenarios != {Scenario.OFFLINE}


def _figure_column(
    title: str, name: str, summaries: Sequence[PointSummary], marked: set[tuple[str, str]]
) -> tuple[str, list[str]]:
    """Return a metric's header, with the provenance if all its figures share one, and its cells."""
    metrics = [summary.metric(name) for summary in summaries]
    words = sorted({metric.provenance for metric in metrics if metric is not None})
    cells = []
    for summary, metric in zip(summaries, metrics, strict=True):
        mark = BEST if (name, summary.point.id) in marked else ""
        word = f" {metric.provenance}" if metric is not None and len(words) > 1 else ""
        cells.append(f"{mark}{format_figure(metric, interval=name in _WITH_INTERVAL)}{word}")
    shared = len(words) == 1 and name in _WITH_INTERVAL
    return f"{title}\n{words[0]}" if shared else title, cells
