"""The tables of a report: points, Pareto front, uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from powerlab.analysis.best import pareto_front
from powerlab.analysis.budget import SHOWN, rows_by_source
from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS
from powerlab.domain.workload import Scenario
from powerlab.reports.blocks import Cell, Column, Figure, Grid
from powerlab.reports.subject import Subject

_FIGURES: tuple[tuple[str, str], ...] = (
    ("median latency", "latency_p50_ms"),
    ("99th percentile", "latency_p99_ms"),
    ("queries", "server_queries_per_s"),
    ("throughput", "throughput_img_per_s"),
    ("power", "power_w"),
    ("energy", "energy_per_image_j"),
    ("efficiency", "efficiency_img_per_s_per_w"),
    ("SQNR", "output_sqnr_db"),
    ("top-1 as fp32", "top1_agreement_percent"),
    ("top-1 right", "top1_accuracy_percent"),
)
_NUMBERS = frozenset({"batch", "slices", "queues", "threads", "bound ms", "spin us"})


def points_table(subject: Subject) -> Grid:
    """Return every point with its figures; the best of each kind is marked."""
    summaries = subject.summaries
    dimensions = [
        one
        for one in DIMENSIONS
        if len({one.read(summary.point) for summary in summaries}) > 1 or one.title in {"threads", "batch"}
    ]
    best = {(one.metric.name, one.summary.point.id) for one in subject.best if one.runner_up is not None}
    figures = _figure_columns(summaries)
    rows: list[tuple[Cell, ...]] = [
        (
            *(one.read(summary.point) or "default" for one in dimensions),
            *(Figure(metric=summary.metric(name), best=(name, summary.point.id) in best) for _, name in figures),
            f"{summary.valid_count}/{summary.run_count}",
        )
        for summary in summaries
    ]
    return Grid(
        name="points",
        caption=(
            f"Every point of the sweep of {subject.models} on {subject.device_name}. ± is the 95 % interval; the best "
            "of its kind is bold. Valid: runs without a finding, of those that were made."
        ),
        columns=(
            *(Column(title=one.title, figures=one.title in _NUMBERS) for one in dimensions),
            *(column for column, _ in figures),
            Column(title="valid", under="runs", figures=True),
        ),
        rows=tuple(rows),
    )


def _figure_columns(summaries: Sequence[PointSummary]) -> list[tuple[Column, str]]:
    """Return the columns that hold a figure, with unit and provenance below each title."""
    scenarios = {summary.point.workload.scenario for summary in summaries}
    return [
        (Column(title=title, under=under(name, summaries), figures=True), name)
        for title, name in _FIGURES
        if _belongs(name, scenarios) and any(summary.metric(name) for summary in summaries)
    ]


def under(name: str, summaries: Iterable[PointSummary]) -> str:
    """Return a metric's unit and the provenance of its figures: ``img/s, measured``."""
    found = sorted({metric.provenance.value for one in summaries if (metric := one.metric(name)) is not None})
    return f"{METRICS[name].unit}, {' and '.join(found)}"


def _belongs(name: str, scenarios: Set[Scenario]) -> bool:
    return name != "server_queries_per_s" or Scenario.SERVER in scenarios


def front_table(subject: Subject) -> Grid | None:
    """Return the points that none beats in both throughput and power; None where no point has power."""
    front = pareto_front(subject.summaries)
    if not front:
        return None
    names = ("power_w", "throughput_img_per_s", "efficiency_img_per_s_per_w")
    return Grid(
        name="pareto-front",
        caption="The Pareto front: no other point of its provenance beats one of these in both img/s and W.",
        columns=(
            Column(title="point"),
            *(Column(title=METRICS[name].title, under=under(name, front), figures=True) for name in names),
        ),
        rows=tuple(
            (subject.named(summary), *(Figure(metric=summary.metric(name)) for name in names)) for summary in front
        ),
    )


def budget_table(subject: Subject, summary: PointSummary) -> Grid | None:
    """Return a point's uncertainty budget, source by source; None where it has none."""
    found = rows_by_source(summary.budget)
    shown = {name: title for name, title in SHOWN.items() if any(name in row.cells for row in found)}
    if not shown:
        return None
    rows: list[tuple[Cell, ...]] = [
        (
            row.effect,
            row.origin,
            row.kind.value,
            *(f"{row.cells[name].percent:.1f} %" if name in row.cells else "–" for name in shown),
        )
        for row in found
    ]
    return Grid(
        name="uncertainty",
        caption=f"What the intervals of {subject.named(summary)} are made of, as shares of the variance (GUM).",
        columns=(
            Column(title="effect"),
            Column(title="origin"),
            Column(title="type"),
            *(Column(title=title, under=METRICS[name].unit, figures=True) for name, title in shown.items()),
        ),
        rows=tuple(rows),
    )
