"""Bulk reads of runs: plain columns instead of ORM objects, documents parsed from text.

A run's row is read by itself; its point and its figures are fetched for some hundred runs at a time. A join over all of
them would let the planner read every point there is before the first of a million runs is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Row, Select, Text, cast, select
from sqlalchemy.orm import Session

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Conditions, Contribution, Finding, Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.protocol.wire import reader
from powerlab.store.reads.convert import METRIC, POINT, to_metric, to_point
from powerlab.store.tables import PointRow, RunMetricRow, RunRow, WorkloadRow

_FIRST, _BATCH = 25, 200
"""Rows fetched at first, and at a time later, where a result is streamed: whoever waits soon has something."""
_OF_RUN = (
    *(RunRow.id, RunRow.sweep_id, RunRow.point_id, RunRow.repeat, RunRow.started_at, RunRow.window_start_ns),
    *(RunRow.window_end_ns, RunRow.inference_count, RunRow.verdict, RunRow.received_at, RunRow.mode),
    *(cast(one, Text).label(one.key) for one in (RunRow.findings, RunRow.total, RunRow.budget, RunRow.conditions)),
)
"""Documents as their text, which is read into domain words at once instead of into dicts first."""
_VERDICTS = {one.value: one for one in Verdict}

_findings = reader(tuple[Finding, ...])
_budget = reader(tuple[Contribution, ...])
_conditions = reader(Conditions)
_total = lru_cache(maxsize=1024)(reader(TotalFormula))
"""A device has the same formula in all of its runs."""


def run_rows() -> Select[*tuple[Any, ...]]:
    """Return the query whose rows :func:`read_runs` understands, of all runs in no order."""
    return select(*_OF_RUN)


def read_runs(
    session: Session,
    wanted: Select[*tuple[Any, ...]],
    *,
    streamed: bool = False,
    metrics: Collection[str] | None = None,
) -> Iterator[tuple[datetime, Run]]:
    """Yield runs with the time each arrived, in the query's order; streamed, a few hundred are in memory at a time.

    Args:
        session: where to read.
        wanted: of :func:`run_rows`.
        streamed: begin before all rows are there.
        metrics: the figures that the runs are to have; None for all.
    """
    found = session.execute(wanted, execution_options={"stream_results": streamed, "max_row_buffer": _BATCH})
    size = _FIRST if streamed else _BATCH
    points: Mapping[int, Point] = {}
    while rows := found.fetchmany(size):
        points = _points(session, rows, points)
        figures = _figures(session, rows, metrics)
        for row in rows:
            if row.point_id in points:  # else its sweep was deleted since the first row was read
                yield row.received_at, _to_run(row, points[row.point_id], figures.get(row.id, ()))
        size = _BATCH


def _points(session: Session, rows: Sequence[Row[*tuple[Any, ...]]], known: Mapping[int, Point]) -> Mapping[int, Point]:
    """Return the points of some runs by their numbers; runs of a point share it."""
    modes = {row.point_id: row.mode for row in rows}
    missing = modes.keys() - known.keys()
    points = {number: known[number] for number in modes.keys() - missing}
    if missing:
        wanted = select(PointRow.id.label("number"), *POINT).join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        for row in session.execute(wanted.where(PointRow.id.in_(missing))):
            points[row.number] = to_point(row, modes[row.number])
    return points


def _figures(
    session: Session, rows: Sequence[Row[*tuple[Any, ...]]], names: Collection[str] | None
) -> dict[str, tuple[Metric, ...]]:
    """Return the figures of some runs by the runs' ids, each run's in their order."""
    wanted = (
        select(RunMetricRow.run_id, *METRIC)
        .where(RunMetricRow.run_id.in_([row.id for row in rows]))
        .order_by(RunMetricRow.run_id, RunMetricRow.position)
    )
    if names is not None:
        wanted = wanted.where(RunMetricRow.name.in_(names))
    found: Iterable[Any] = session.execute(wanted).all()
    by_run = groupby(found, key=itemgetter(0))
    return {run_id: tuple(to_metric(*figure) for _, *figure in own) for run_id, own in by_run}


def _to_run(row: Any, point: Point, metrics: tuple[Metric, ...]) -> Run:
    """Return the run, equal to the one that was uploaded."""
    return Run(
        id=row.id,
        sweep_id=row.sweep_id,
        point=point,
        repeat=row.repeat,
        started_at=row.started_at,
        window_ns=(row.window_start_ns, row.window_end_ns),
        inference_count=row.inference_count,
        verdict=_VERDICTS[row.verdict],
        findings=_findings(row.findings),
        metrics=metrics,
        total=None if row.total is None else _total(row.total),
        budget=_budget(row.budget),
        conditions=None if row.conditions is None else _conditions(row.conditions),
    )
