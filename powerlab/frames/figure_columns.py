"""Figures as columns: four a metric, so that no value is without its interval and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from powerlab.domain.layers import LAYER_METRICS
from powerlab.domain.quantity import METRICS, Metric, MetricKind
from powerlab.domain.run import Finding
from powerlab.protocol.export import Cell, Column

FINDINGS_COLUMN = Column("findings", "string", "what the validity rules said, a sentence each; empty where nothing")


def figure_columns(name: str) -> tuple[str, str, str, str]:
    """Return the names of a metric's columns: value, ends of the 95 % interval, provenance."""
    return name, f"{name}_low", f"{name}_high", f"{name}_provenance"


def columns_of(kinds: Mapping[str, MetricKind]) -> tuple[Column, ...]:
    """Return the columns of metrics; where a figure is missing, all four of its cells are null."""
    return tuple(column for name, kind in kinds.items() for column in _columns(name, kind))


def _columns(name: str, kind: MetricKind) -> Iterator[Column]:
    value, low, high, provenance = figure_columns(name)
    yield Column(value, "double", kind.title, nullable=True, unit=kind.unit)
    yield Column(low, "double", "lower end of its 95 % interval", nullable=True, unit=kind.unit)
    yield Column(high, "double", "upper end", nullable=True, unit=kind.unit)
    yield Column(provenance, "string", "measured, estimated, simulated, published", nullable=True)


def cells_of(kinds: Mapping[str, MetricKind], metrics: Iterable[Metric]) -> tuple[Cell, ...]:
    """Return the cells of :func:`columns_of`."""
    by_name = {metric.name: metric for metric in metrics}
    return tuple(cell for name in kinds for cell in metric_cells(by_name.get(name)))


def metric_cells(metric: Metric | None) -> tuple[Cell, Cell, Cell, Cell]:
    """Return value, ends and provenance of a figure; four times null where there is none."""
    if metric is None:
        return None, None, None, None
    return metric.value, metric.low, metric.high, metric.provenance.value


def findings_cell(findings: Iterable[Finding]) -> str:
    """Return what rules said, each with its name."""
    return "; ".join(f"{finding.rule}: {finding.detail}" for finding in findings)


RUN_FIGURES = columns_of(METRICS)
LAYER_FIGURES = {
    name: LAYER_METRICS[name]
    for name in (
        "layer_time_ms",
        "layer_alone_ms",
        "layer_power_w",
        "layer_energy_j",
        "layer_energy_above_idle_j",
    )
}
"""The figures of a single layer; the others are of the whole profile."""
