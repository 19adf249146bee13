"""Runs read by the thousand: plain columns instead of objects that follow every row, figures some hundred at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Row, Select, select
from sqlalchemy.orm import Session

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Conditions, Contribution, Finding, Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.protocol.wire import from_document
from powerlab.store.convert import to_workload
from powerlab.store.models import PointRow, RunMetricRow, RunRow, WorkloadRow

_BATCH = 200
"""Rows fetched at a time where a result is streamed."""
_OF_RUN = (
    *(RunRow.id, RunRow.sweep_id, RunRow.repeat, RunRow.started_at, RunRow.window_start_ns, RunRow.window_end_ns),
    *(RunRow.inference_count, RunRow.verdict, RunRow.findings, RunRow.total, RunRow.budget, RunRow.conditions),
    *(RunRow.received_at, RunRow.threads, RunRow.mode, PointRow.spin_us, PointRow.cores),
)
_OF_WORKLOAD = tuple(column for column in WorkloadRow.__table__.columns if column.name != "id")
_METRIC = (RunMetricRow.run_id, RunMetricRow.name, RunMetricRow.value, RunMetricRow.low, RunMetricRow.high)


def run_rows() -> Select[*tuple[Any, ...]]:
    """Return the query whose rows :func:`read_runs` understands, of all runs in no order."""
    joined = select(*_OF_RUN, *_OF_WORKLOAD).join(PointRow, PointRow.id == RunRow.point_id)
    return joined.join(WorkloadRow, WorkloadRow.id == RunRow.workload_id)


def read_runs(
    session: Session, wanted: Select[*tuple[Any, ...]], *, streamed: bool = False
) -> Iterator[tuple[datetime, Run]]:
    """Yield runs with the time each arrived, in the query's order; streamed, a few hundred are in memory at a time."""
    options = {"yield_per": _BATCH} if streamed else {}
    for rows in session.execute(wanted, execution_options=options).partitions(_BATCH):
        figures = _figures(session, rows)
        for row in rows:
            yield row.received_at, _to_run(row, figures.get(row.id, ()))


def _figures(session: Session, rows: Sequence[Row[*tuple[Any, ...]]]) -> dict[str, tuple[Metric, ...]]:
    """Return the figures of some runs by the runs' ids, each run's in their order."""
    wanted = (
        select(*_METRIC, RunMetricRow.provenance)
        .where(RunMetricRow.run_id.in_([row.id for row in rows]))
        .order_by(RunMetricRow.run_id, RunMetricRow.position)
    )
    found: Iterable[Any] = session.execute(wanted)
    return {run_id: tuple(map(_to_metric, own)) for run_id, own in groupby(found, key=lambda row: row[0])}


def _to_metric(row: tuple[str, str, float, float | None, float | None, str]) -> Metric:
    _, name, value, low, high, provenance = row
    return Metric(name=name, value=value, low=low, high=high, provenance=Provenance(provenance))


def _to_run(row: Any, metrics: tuple[Metric, ...]) -> Run:
    """Return the run, equal to the one that was uploaded."""
    point = Point(workload=to_workload(row), threads=row.threads, mode=row.mode, spin_us=row.spin_us, cores=row.cores)
    return Run(
        id=row.id,
        sweep_id=row.sweep_id,
        point=point,
        repeat=row.repeat,
        started_at=row.started_at,
        window_ns=(row.window_start_ns, row.window_end_ns),
        inference_count=row.inference_count,
        verdict=Verdict(row.verdict),
        findings=from_document(row.findings, tuple[Finding, ...]),
        metrics=metrics,
        total=None if row.total is None else from_document(row.total, TotalFormula),
        budget=from_document(row.budget, tuple[Contribution, ...]),
        conditions=None if row.conditions is None else from_document(row.conditions, Conditions),
    )
