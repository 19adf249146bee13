"""The table of a sweep's points: the columns, order and part of it that a reader chose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.analysis.dimensions import Dimension, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, POWER_FIGURES
from powerlab.domain.sweep import SweepPlan
from powerlab.reports.reproduce import plan_of_point, profile_command
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.sweep_asked import Asked
from powerlab_dashboards.places import naming

ROWS = 50
"""Rows of one part; a sweep of a thousand points has twenty."""
USUAL = (
    "latency_p50_ms",
    "latency_p90_ms",
    "latency_p99_ms",
    "throughput_img_per_s",
    "power_w",
    "energy_per_image_j",
    "efficiency_img_per_s_per_w",
)
ACCURACY = ("output_sqnr_db", "top1_agreement_percent", "top1_accuracy_percent")
"""Shown as well where a point has the figure: it compares a low precision with fp32, or answers with labels."""
RUNS = "runs"
_HEADINGS: Mapping[str, str] = {
    "latency_p50_ms": mark("Latency p50"),
    "latency_p90_ms": mark("p90"),
    "latency_p95_ms": mark("p95"),
    "latency_p99_ms": mark("p99"),
    "latency_p99_9_ms": mark("p99.9"),
    "power_w": mark("Power"),
    "idle_power_w": mark("Idle power"),
    "energy_per_image_j": mark("Energy"),
    "efficiency_img_per_s_per_w": mark("Efficiency"),
    "peak_memory_mb": mark("Memory"),
    "output_sqnr_db": mark("SQNR"),
    "top1_agreement_percent": mark("Top-1 agreement"),
    "top1_accuracy_percent": mark("Accuracy"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        name: in the address.
        title: in English, as the catalogue has it.
        unit: of its figures.
        dimension: what it shows of a point, if it is no figure.
        provenance: what all its figures share; empty if they differ, or there are none.
        missing: what a cell without a figure says.
    """

    name: str
    title: str
    unit: str = ""
    dimension: Dimension | None = None
    provenance: str = ""
    missing: str = ""

    @property
    def heading(self) -> str:
        """Its title, or what that is called where space is short; in English, too."""
        return _HEADINGS.get(self.name, self.title)

    @property
    def number(self) -> bool:
        """Whether it holds numbers, which stand right."""
        return self.dimension is None or self.dimension.numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A point: its name, its figures, the command that measures it again, and why bounds exclude it."""

    summary: PointSummary
    name: str
    command: str
    barred: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A part of the table.

    Attributes:
        columns: those shown.
        choosable: all there are.
        rows: of this part.
        found: how many points the reader's words find.
        number: which part it is, from 1.
        parts: how many there are.
    """

    columns: tuple[Column, ...]
    choosable: tuple[Column, ...]
    rows: tuple[Row, ...]
    found: int
    number: int
    parts: int


def table_of(
    summaries: Sequence[PointSummary], asked: Asked, plan: SweepPlan, *, board: str | None, barred: Mapping[str, str]
) -> Table:
    """Return the part of the table that was asked for.

    Args:
        summaries: all points.
        asked: the columns, words, order and part.
        plan: what was run, for the commands.
        board: the simulated board that was measured; None for a real device.
        barred: why the reader's bounds exclude points, by their ids.
    """
    choosable = _columns(summaries)
    chosen = tuple(one for one in choosable if one.name in asked.columns)
    named = naming(summary.point for summary in summaries)
    found = in_order(matching(summaries, asked.words), asked.sort)
    parts = max(1, math.ceil(len(found) / ROWS))
    number = min(asked.number, parts)
    rows = tuple(
        Row(
            summary=summary,
            name=named(summary.point),
            command=profile_command(plan_of_point(plan, summary.point), board),
            barred=barred.get(summary.point.id, ""),
        )
        for summary in found[(number - 1) * ROWS : number * ROWS]
    )
    return Table(
        columns=chosen or tuple(one for one in choosable if one.name in (*USUAL, *ACCURACY)),
        choosable=choosable,
        rows=rows,
        found=len(found),
        number=number,
        parts=parts,
    )


def matching(summaries: Sequence[PointSummary], words: str) -> list[PointSummary]:
    """Return the points in whose names all words are."""
    wanted = words.lower().split()
    if not wanted:
        return list(summaries)
    named = naming(summary.point for summary in summaries)
    return [summary for summary in summaries if all(word in named(summary.point).lower() for word in wanted)]


def in_order(summaries: Sequence[PointSummary], sort: str) -> list[PointSummary]:
    """Return the points in order of a column, those without a figure last; in the plan's order by default."""
    name, descending = sort.removeprefix("-"), sort.startswith("-")
    sign = -1.0 if descending else 1.0
    if name == RUNS:
        return sorted(summaries, key=lambda summary: sign * summary.valid_count)
    if name in METRICS:
        return sorted(
            summaries,
            key=lambda summary: sign * figure.value if (figure := summary.metric(name)) is not None else math.inf,
        )
    dimension = next((one for one in varied(summary.point for summary in summaries) if one.title == name), None)
    if dimension is None:
        return list(reversed(summaries)) if descending else list(summaries)
    read = dimension.read
    if dimension.numeric:
        return sorted(summaries, key=lambda summary: sign * float(read(summary.point) or 0))
    return sorted(summaries, key=lambda summary: read(summary.point), reverse=descending)


def _columns(summaries: Sequence[PointSummary]) -> tuple[Column, ...]:
    """Return the dimensions that varied and the figures that some point has, and always the usual ones."""
    provenances: dict[str, set[str]] = {name: set() for name in USUAL}
    for summary in summaries:
        for metric in summary.metrics:
            provenances.setdefault(metric.name, set()).add(metric.provenance.value)
    dimensions = (
        Column(name=one.title, title=one.title, dimension=one) for one in varied(summary.point for summary in summaries)
    )
    figures = (
        Column(
            name=name,
            title=kind.title,
            unit=kind.unit,
            provenance=next(iter(provenances[name])) if len(provenances[name]) == 1 else "",
            missing=_("no power") if name in POWER_FIGURES else _("no figure"),
        )
        for name, kind in METRICS.items()
        if name in provenances
    )
    return (*dimensions, *figures)
