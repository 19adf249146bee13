"""Queries of devices, sweeps and runs. Results are domain objects and records, never rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session, joinedload, selectinload

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import POWER_QUANTITIES, Part, Trace
from powerlab.domain.run import Run
from powerlab.protocol.records import DeviceRecord, SweepRecord
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.clusters import with_nodes
from powerlab.store.reads.convert import SWEEP, to_device, to_sweep
from powerlab.store.reads.eligible_names import eligible_device_names
from powerlab.store.reads.filters import DeviceFilter, RunFilter, SweepFilter
from powerlab.store.reads.run_rows import read_runs, run_rows
from powerlab.store.tables import DeviceRow, DeviceSnapshotRow, JobRow, PointRow, RunRow, SweepRow
from powerlab.store.traces.base import trace_store, whole


def newest_snapshot(session: Session, device_id: str) -> DeviceSnapshotRow:
    """Return how a device described itself last; raises NotFoundError."""
    wanted = (
        select(DeviceSnapshotRow)
        .where(DeviceSnapshotRow.device_id == device_id)
        .order_by(DeviceSnapshotRow.id.desc())
        .limit(1)
    )
    row = session.scalar(wanted)
    if row is None:
        raise NotFoundError(f"there is no device {device_id!r}; GET /api/v1/devices lists them.")
    return row


def list_devices(session: Session, filters: DeviceFilter | None = None) -> list[DeviceRecord]:
    """Return devices, in the order of their names."""
    chosen = filters or DeviceFilter()
    newest = select(func.max(DeviceSnapshotRow.id)).group_by(DeviceSnapshotRow.device_id)
    wanted = (
        select(DeviceRow, DeviceSnapshotRow)
        .join(DeviceSnapshotRow, DeviceSnapshotRow.device_id == DeviceRow.id)
        .where(DeviceSnapshotRow.id.in_(newest))
        .order_by(DeviceRow.name, DeviceRow.id)
        .limit(chosen.limit)
        .options(selectinload(DeviceRow.labels), joinedload(DeviceRow.backlog))
    )
    return [to_device(row, snapshot) for row, snapshot in session.execute(chosen.narrow(wanted))]


def device(session: Session, device_id: str) -> DeviceRecord:
    """Return one device; raises NotFoundError."""
    snapshot = newest_snapshot(session, device_id)
    return to_device(session.get_one(DeviceRow, device_id), snapshot)


def _sweeps() -> Select[*tuple[Any, ...]]:
    # Outer joins, though every sweep has its device and job: the planner then begins with the sweeps.
    stored = select(func.count()).where(RunRow.sweep_id == SweepRow.id).scalar_subquery()
    return (
        select(*SWEEP, stored.label("stored"))
        .outerjoin(DeviceRow, DeviceRow.id == SweepRow.device_id)
        .outerjoin(DeviceSnapshotRow, DeviceSnapshotRow.id == SweepRow.snapshot_id)
        .outerjoin(JobRow, JobRow.sweep_id == SweepRow.id)
    )


def _records(session: Session, wanted: Select[*tuple[Any, ...]]) -> list[SweepRecord]:
    rows = session.execute(wanted).all()
    names = eligible_device_names(session, [row.id for row in rows if row.any_of is not None])
    return with_nodes(session, [to_sweep(row, row.stored, names.get(row.id, ())) for row in rows])


def list_sweeps(
    session: Session,
    filters: SweepFilter | None = None,
    *,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
) -> list[SweepRecord]:
    """Return sweeps, newest first; ``after`` is the (created_at, id) of the last one seen."""
    chosen = filters or SweepFilter()
    wanted = chosen.narrow(session, _sweeps()).order_by(SweepRow.created_at.desc(), SweepRow.id.desc()).limit(limit)
    if after is not None:
        wanted = wanted.where(tuple_(SweepRow.created_at, SweepRow.id) < after)
    return _records(session, wanted)


def sweep(session: Session, sweep_id: str) -> SweepRecord:
    """Return one sweep; raises NotFoundError."""
    for found in _records(session, _sweeps().where(SweepRow.id == sweep_id)):
        return found
    raise NotFoundError(f"there is no sweep {sweep_id!r}; `powerlab sweep list` (GET /api/v1/sweeps) lists them.")


def sweeps_by_id(session: Session, sweep_ids: Sequence[str]) -> dict[str, SweepRecord]:
    """Return some sweeps by their ids; one that is not there is left out."""
    return {found.id: found for found in _records(session, _sweeps().where(SweepRow.id.in_(sweep_ids)))}


def runs_of_sweep(session: Session, sweep_id: str, *, start: int = 0, most: int | None = None) -> list[Run]:
    """Return a sweep's runs in plan order, repeats of a point in their order.

    Args:
        session: where to read.
        sweep_id: whose runs.
        start: how many to leave out at the beginning.
        most: how many to return at most; None for all.

    Raises:
        NotFoundError: there is no such sweep.
    """
    wanted = run_rows().join(PointRow, PointRow.id == RunRow.point_id).where(RunRow.sweep_id == sweep_id)
    wanted = wanted.order_by(PointRow.position, RunRow.repeat).offset(start).limit(most)
    runs = [run for _, run in read_runs(session, wanted)]
    if not runs:
        sweep(session, sweep_id)
    return runs


def stream_runs(session: Session, filters: RunFilter) -> Iterator[tuple[datetime, Run]]:
    """Yield runs with the time each arrived, in that order, fetching a few rows at a time."""
    wanted = run_rows().order_by(RunRow.received_at, RunRow.id).limit(filters.limit)
    return read_runs(session, filters.narrow(session, wanted), streamed=filters.limit is None)


def run(session: Session, run_id: str) -> Run:
    """Return one run; raises NotFoundError."""
    for _, found in read_runs(session, run_rows().where(RunRow.id == run_id)):
        return found
    raise _no_run(run_id)


def _no_run(run_id: str) -> NotFoundError:
    return NotFoundError(f"there is no run {run_id!r}; `powerlab runs list` (GET /api/v1/runs) lists them.")


def run_id_from(session: Session, beginning: str) -> str:
    """Return the id of the run whose id begins so.

    Raises:
        NotFoundError: there is no such run.
        PowerlabError: there are several.
    """
    found = session.scalars(
        select(RunRow.id).where(RunRow.id.startswith(beginning, autoescape=True)).order_by(RunRow.id).limit(2)
    ).all()
    if not beginning or not found:
        raise _no_run(beginning)
    if len(found) > 1 and found[0] != beginning:
        raise PowerlabError(
            f"several runs begin with {beginning!r}, {found[0]} and {found[1]} among them; give more characters."
        )
    return found[0]


def recorded(session: Session, run_id: str) -> list[Trace]:
    """Return all that was recorded with a run, whole: its rails in every part, latencies and temperatures.

    Raises:
        NotFoundError: there is no such run.
    """
    if session.scalar(select(RunRow.id).where(RunRow.id == run_id)) is None:
        raise _no_run(run_id)
    return list(whole(trace_store(session).scan(session, run_id)))


def power_traces(session: Session, run_id: str) -> list[Trace]:
    """Return the traces of a run's rails around its timed part, whole; raises NotFoundError."""
    return [
        trace
        for trace in recorded(session, run_id)
        if trace.part is Part.RUN and trace.rail.quantity in POWER_QUANTITIES
    ]
