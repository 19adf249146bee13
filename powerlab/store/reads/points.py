"""Queries of workloads, points and single metrics, across sweeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from powerlab.domain.run import Verdict
from powerlab.protocol.records import FigureRecord, PointRecord, WorkloadRecord
from powerlab.store.reads.convert import METRIC, POINT, to_metric, to_point, to_workload
from powerlab.store.reads.filters import RunFilter, between
from powerlab.store.tables import DeviceRow, PointRow, PowerModeRow, RunMetricRow, RunRow, SweepRow, WorkloadRow

_NUMBERED = (PointRow.id.label("number"), PointRow.key, PointRow.sweep_id)
_RUN = (
    *(RunRow.id.label("run_id"), RunRow.sweep_id, RunRow.device_id, RunRow.mode, RunRow.repeat, RunRow.verdict),
    RunRow.received_at,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureFilter:
    """Which figures: of that metric, within these bounds (both included), of these runs."""

    name: str
    low: float | None = None
    high: float | None = None
    runs: RunFilter


def list_workloads(
    session: Session,
    *,
    model: str | None = None,
    engine: str | None = None,
    limit: int | None = None,
    after: int | None = None,
) -> list[WorkloadRecord]:
    """Return workloads in the order in which they were first asked for; ``after`` is the last number seen."""
    stored = select(func.count()).where(RunRow.workload_id == WorkloadRow.id).scalar_subquery()
    wanted = select(WorkloadRow, stored).order_by(WorkloadRow.id).limit(limit)
    if model is not None:
        wanted = wanted.where(WorkloadRow.model == model)
    if engine is not None:
        wanted = wanted.where(WorkloadRow.engine == engine)
    if after is not None:
        wanted = wanted.where(WorkloadRow.id > after)
    return [
        WorkloadRecord(id=row.id, workload=to_workload(row), stored_run_count=count)
        for row, count in session.execute(wanted)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFilter:
    """Which points; None asks for all. ``after`` is the last number seen."""

    sweep_id: str | None = None
    device_id: str | None = None
    point_id: str | None = None
    model: str | None = None
    threads: int | None = None
    limit: int | None = None
    after: int | None = None


def list_points(session: Session, filters: PointFilter) -> list[PointRecord]:
    """Return points in the order in which they were asked for."""
    stored = select(func.count()).where(RunRow.point_id == PointRow.id).scalar_subquery()
    wanted = (
        select(*_NUMBERED, *POINT, SweepRow.device_id, PowerModeRow.name.label("mode"), stored.label("stored"))
        .join(SweepRow, SweepRow.id == PointRow.sweep_id)
        .join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .outerjoin(PowerModeRow, PowerModeRow.id == PointRow.power_mode_id)
        .order_by(PointRow.id)
        .limit(filters.limit)
    )
    if filters.sweep_id is not None:
        wanted = wanted.where(PointRow.sweep_id == filters.sweep_id)
    if filters.device_id is not None:
        wanted = wanted.where(SweepRow.device_id == filters.device_id)
    if filters.point_id is not None:
        wanted = wanted.where(PointRow.key == filters.point_id)
    if filters.model is not None:
        wanted = wanted.where(WorkloadRow.model == filters.model)
    if filters.threads is not None:
        wanted = wanted.where(PointRow.threads == filters.threads)
    if filters.after is not None:
        wanted = wanted.where(PointRow.id > filters.after)
    return [
        PointRecord(
            number=row.number,
            id=row.key,
            sweep_id=row.sweep_id,
            device_id=row.device_id,
            point=to_point(row, row.mode),
            stored_run_count=row.stored,
        )
        for row in session.execute(wanted)
    ]


def list_figures(session: Session, filters: FigureFilter) -> list[FigureRecord]:
    """Return figures of one metric, in the order in which their runs arrived."""
    same_run = and_(RunRow.id == RunMetricRow.run_id, RunRow.received_at == RunMetricRow.received_at)
    wanted = (
        select(*METRIC, RunMetricRow.unit, *_RUN, DeviceRow.name.label("device_name"), *POINT)
        .join(RunRow, same_run)
        .join(PointRow, PointRow.id == RunRow.point_id)
        .join(DeviceRow, DeviceRow.id == RunRow.device_id)
        .outerjoin(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .where(RunMetricRow.name == filters.name, *between(RunMetricRow.received_at, *filters.runs.times()))
        .order_by(RunRow.received_at, RunRow.id)
        .limit(filters.runs.limit)
    )
    if filters.low is not None:
        wanted = wanted.where(RunMetricRow.value >= filters.low)
    if filters.high is not None:
        wanted = wanted.where(RunMetricRow.value <= filters.high)
    return [_to_figure(row) for row in session.execute(filters.runs.narrow(session, wanted))]


def _to_figure(row: Any) -> FigureRecord:
    return FigureRecord(
        run_id=row.run_id,
        sweep_id=row.sweep_id,
        device_id=row.device_id,
        device_name=row.device_name,
        point=to_point(row, row.mode),
        repeat=row.repeat,
        verdict=Verdict(row.verdict),
        received_at=row.received_at,
        metric=to_metric(row.name, row.value, row.low, row.high, row.provenance),
        unit=row.unit,
    )
