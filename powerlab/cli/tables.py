"""The table of a sweep, for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from powerlab.analysis.best import GOALS, best_points
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, Metric, Provenance

ABSENT = "–"
_COLUMNS: tuple[tuple[str, str], ...] = (
    ("p50", "latency_p50_ms"),
    ("p90", "latency_p90_ms"),
    ("p99", "latency_p99_ms"),
    ("throughput", "throughput_img_per_s"),
    ("power", "power_w"),
    ("efficiency", "efficiency_img_per_s_per_w"),
)
_WITH_INTERVAL = frozenset({"latency_p50_ms", "throughput_img_per_s", "power_w", "efficiency_img_per_s_per_w"})


def format_number(value: float, digits: int) -> str:
    """Return a number with so many significant digits, never in scientific notation."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def format_figure(metric: Metric | None, *, interval: bool = True) -> str:
    """Return ``value ±half-width``: the wider side of the 95 % interval to two digits, the value to the same place."""
    if metric is None:
        return ABSENT
    if not interval or metric.low is None or metric.high is None:
        return format_number(metric.value, 4)
    half_width = max(metric.high - metric.value, metric.value - metric.low)
    if half_width <= 0:
        return f"{format_number(metric.value, 4)} ±0"
    places = min(9, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{metric.value:.{places}f} ±{half_width:.{places}f}"


def point_name(summary: PointSummary) -> str:
    """Return a point in words: ``resnet50, batch 1, 2 threads, mode current``."""
    point = summary.point
    threads = "1 thread" if point.threads == 1 else f"{point.threads} threads"
    return f"{point.workload.model}, batch {point.workload.batch_size}, {threads}, mode {point.mode}"


def sweep_table(summaries: Sequence[PointSummary]) -> Table:
    """Return the table of a sweep: a row a point, the best rows marked, provenance beside every figure's unit.

    Where a column holds figures of several provenances, each figure carries its own word instead.
    """
    table = Table(caption="± is the 95 % interval; best marks the leading point of each goal", caption_justify="left")
    for title in ("model", "batch", "threads", "mode"):
        table.add_column(title, justify="left" if title in {"model", "mode"} else "right", overflow="fold")
    words = {name: _provenances(summaries, name) for _, name in _COLUMNS}
    for title, name in _COLUMNS:
        shared = f"\n{words[name][0]}" if len(words[name]) == 1 else ""
        table.add_column(f"{title}\n{METRICS[name].unit}{shared}", justify="right")
    table.add_column("valid", justify="right")
    table.add_column("best", justify="left")
    marks = _marks(summaries)
    for summary in summaries:
        cells = [_cell(summary.metric(name), name, mixed=len(words[name]) > 1) for _, name in _COLUMNS]
        goals = marks.get(summary.point.id, [])
        point = summary.point
        table.add_row(
            Text(point.workload.model),
            str(point.workload.batch_size),
            str(point.threads),
            Text(point.mode),
            *cells,
            f"{summary.valid_count}/{summary.run_count}",
            ", ".join(goals),
            style="bold" if goals else "",
        )
    return table


def _cell(metric: Metric | None, name: str, *, mixed: bool) -> str:
    text = format_figure(metric, interval=name in _WITH_INTERVAL)
    return f"{text} {metric.provenance}" if mixed and metric is not None else text


def _provenances(summaries: Sequence[PointSummary], name: str) -> list[Provenance]:
    return sorted({metric.provenance for summary in summaries if (metric := summary.metric(name)) is not None})


def _marks(summaries: Sequence[PointSummary]) -> dict[str, list[str]]:
    """Return the goals each point is best at, by point id; a lone point is best at nothing."""
    marks: dict[str, list[str]] = {}
    for best in best_points(summaries):
        if best.runner_up is not None:
            marks.setdefault(best.summary.point.id, []).append(best.goal)
    return {point_id: sorted(goals, key=list(GOALS).index) for point_id, goals in marks.items()}
