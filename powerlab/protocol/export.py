"""Runs as lines of text: CSV with a line a figure, or NDJSON with a document a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.protocol.wire import encode

CSV_COLUMNS = (
    *("run_id", "sweep_id", "started_at", "engine", "model", "precision", "scenario", "batch_size", "threads", "mode"),
    *("slices", "preparation", "latency_bound_ms", "spin_us", "cores"),
    *("repeat", "verdict", "inference_count", "metric", "value", "unit", "low", "high", "provenance", "power_scope"),
)


def csv_lines(runs: Iterable[Run]) -> Iterator[str]:
    """Yield a header and one line a figure; a run without figures has one line that leaves them empty.

    Floats are written so that they are read back exactly.
    """
    yield _line(CSV_COLUMNS)
    for run in runs:
        load = run.point.workload
        point = run.point
        spin_us = "" if point.spin_us is None else point.spin_us
        start = (
            *(run.id, run.sweep_id, run.started_at, load.engine, load.model, load.precision, load.scenario.value),
            *(load.batch_size, point.threads, point.mode),
            *(load.slices, load.preparation.value, load.latency_bound_ms, spin_us, point.cores),
            *(run.repeat, run.verdict.value, run.inference_count),
        )
        scope = "" if run.total is None else run.total.scope
        if not run.metrics:
            yield _line((*start, "", "", "", "", "", "", scope))
        for metric in run.metrics:
            interval = ("", "") if metric.low is None else (metric.low, metric.high)
            unit = METRICS[metric.name].unit
            yield _line((*start, metric.name, metric.value, unit, *interval, metric.provenance.value, scope))


def ndjson_lines(runs: Iterable[Run]) -> Iterator[str]:
    """Yield one JSON document a run."""
    for run in runs:
        yield encode(run).decode() + "\n"


def _line(cells: Iterable[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
