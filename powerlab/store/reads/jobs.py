"""Queries of the job queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, or_, select, tuple_
from sqlalchemy.orm import Session

from powerlab.protocol.records import JobRecord, SweepState
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.clusters import sweeps_with_others
from powerlab.store.reads.convert import JOB, to_job
from powerlab.store.reads.eligible_names import eligible_device_names
from powerlab.store.reads.queue import of_device
from powerlab.store.tables import DeviceRow, JobRow, SweepRow

_JOBS = (
    select(*JOB)
    .outerjoin(SweepRow, SweepRow.id == JobRow.sweep_id)
    .outerjoin(DeviceRow, DeviceRow.id == SweepRow.device_id)
)
"""Outer joins, though every job has its sweep and that its device: the planner then begins with the jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs are wanted; None asks for all. ``after`` is the (created_at, id) of the last one seen."""

    state: SweepState | None = None
    states: Sequence[SweepState] | None = None
    device_id: str | None = None
    sweep_id: str | None = None
    submitter: str | None = None
    limit: int | None = None
    after: tuple[datetime, str] | None = None


def list_jobs(session: Session, filters: JobFilter) -> list[JobRecord]:
    """Return jobs, newest first."""
    wanted = _JOBS.order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(filters.limit)
    if filters.state is not None:
        wanted = wanted.where(JobRow.state == filters.state.value)
    if filters.states is not None:
        wanted = wanted.where(JobRow.state.in_([state.value for state in filters.states]))
    if filters.device_id is not None:
        others = sweeps_with_others(session, filters.device_id)
        wanted = wanted.where(or_(of_device(filters.device_id), JobRow.sweep_id.in_(others)))
    if filters.sweep_id is not None:
        wanted = wanted.where(JobRow.sweep_id == filters.sweep_id)
    if filters.submitter is not None:
        wanted = wanted.where(SweepRow.submitter == filters.submitter)
    if filters.after is not None:
        wanted = wanted.where(tuple_(JobRow.created_at, JobRow.id) < filters.after)
    return _records(session, wanted)


def job(session: Session, job_id: str) -> JobRecord:
    """Return one job; raises NotFoundError."""
    for found in _records(session, _JOBS.where(JobRow.id == job_id)):
        return found
    raise NotFoundError(f"there is no job {job_id!r}; GET /api/v1/jobs lists them.")


def _records(session: Session, wanted: Select[*tuple[Any, ...]]) -> list[JobRecord]:
    rows = session.execute(wanted).all()
    names = eligible_device_names(session, [row.sweep_id for row in rows if row.chosen])
    return [to_job(row, names.get(row.sweep_id, ())) for row in rows]
