"""Runs as text: CSV with one line per metric, or NDJSON with one document per run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.protocol.wire import encode

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that is exported.

    Attributes:
        name: in every format.
        kind: its type, in the words of Arrow and Parquet; CSV has text alone.
        words: what it says, for the documentation.
        nullable: whether a row may have nothing there: an empty cell in CSV, null in Parquet.
        unit: the unit of its numbers; empty where they have none, or another column says it.
    """

    name: str
    kind: Literal["string", "int64", "double", "bool"]
    words: str
    nullable: bool = False
    unit: str = ""


POINT_COLUMNS = (
    Column("engine", "string", "what ran the model"),
    Column("model", "string", "zoo name, path, or NAME@sha256:DIGEST"),
    Column("precision", "string", "number format"),
    Column("scenario", "string", "how queries followed each other"),
    Column("batch_size", "int64", "images per inference"),
    Column("threads", "int64", "threads that computed"),
    Column("mode", "string", "power mode"),
    Column("slices", "int64", "parts of a batch that ran at the same time"),
    Column("preparation", "string", "whether input preparation was timed: outside, inside"),
    Column("latency_bound_ms", "double", "bound of the server scenario; 0 in others", unit="ms"),
    Column("spin_us", "int64", "how long idle threads spun", nullable=True, unit="us"),
    Column("cores", "string", "list of cores; empty: the first ones"),
    Column("processor", "string", "what computed: cpu, gpu"),
    Column("workload", "string", "what was done with the model: inference, train"),
    Column("optimizer", "string", "how steps of training moved the weights; empty: nothing was trained"),
    Column("recompute", "string", "whether they computed activations again: no, yes"),
    Column("queues", "int64", "queues of the graphics processor that slices were spread over"),
    Column("devices", "int64", "devices that shared each batch"),
)
RUN_COLUMNS = (
    Column("run_id", "string", "the run's identifier"),
    Column("sweep_id", "string", "that of its sweep"),
    Column("started_at", "string", "when it began, ISO 8601, as its device said"),
    *POINT_COLUMNS,
    Column("repeat", "int64", "counted from 0"),
    Column("verdict", "string", "valid, flagged, void, failed"),
    Column("inference_count", "int64", "timed inferences"),
)
SCOPE_COLUMN = Column("power_scope", "string", "what the board's power includes; empty where none was read")
FIGURE_COLUMNS = (
    *RUN_COLUMNS,
    Column("metric", "string", "the figure's name; nothing where a run has none", nullable=True),
    Column("value", "double", "the figure", nullable=True),
    Column("unit", "string", "its unit", nullable=True),
    Column("low", "double", "lower end of its 95 % interval", nullable=True),
    Column("high", "double", "upper end", nullable=True),
    Column("provenance", "string", "measured, estimated, simulated", nullable=True),
    SCOPE_COLUMN,
)
CSV_COLUMNS = tuple(column.name for column in FIGURE_COLUMNS)


def point_cells(point: Point) -> tuple[Cell, ...]:
    """Return a point in the order of :data:`POINT_COLUMNS`."""
    load = point.workload
    return (
        *(load.engine, load.model, load.precision, load.scenario.value, load.batch_size, point.threads, point.mode),
        *(load.slices, load.preparation.value, load.latency_bound_ms, point.spin_us, point.cores),
        *(load.processor.value, load.kind.value, load.optimizer, load.recompute.value, load.queues, load.nodes),
    )


def run_cells(run: Run) -> tuple[Cell, ...]:
    """Return a run without its figures, in the order of :data:`RUN_COLUMNS`."""
    start = (run.id, run.sweep_id, run.started_at, *point_cells(run.point))
    return (*start, run.repeat, run.verdict.value, run.inference_count)


def scope_of(run: Run) -> str:
    """Return what the board's power includes in a run; empty where none was read."""
    return "" if run.total is None else run.total.scope


def figure_rows(runs: Iterable[Run]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row a figure, in the order of :data:`FIGURE_COLUMNS`; a run without figures has one row."""
    for run in runs:
        start, scope = run_cells(run), scope_of(run)
        if not run.metrics:
            yield (*start, None, None, None, None, None, None, scope)
        for metric in run.metrics:
            unit = METRICS[metric.name].unit
            yield (*start, metric.name, metric.value, unit, metric.low, metric.high, metric.provenance.value, scope)


def csv_lines(runs: Iterable[Run]) -> Iterator[str]:
    """Yield a header and one line a figure.

    Floats are written so that they are read back exactly.
    """
    yield csv_line(CSV_COLUMNS)
    yield from map(csv_line, figure_rows(runs))


def ndjson_lines(runs: Iterable[Run]) -> Iterator[str]:
    """Yield one JSON document a run."""
    for run in runs:
        yield encode(run).decode() + "\n"


def csv_line(cells: Iterable[Cell]) -> str:
    """Return a line of CSV; None is an empty cell."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
