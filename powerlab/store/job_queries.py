"""What readers ask of the queue of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session, joinedload

from powerlab.protocol.records import JobRecord, SweepState
from powerlab.store.convert import to_job
from powerlab.store.errors import NotFoundError
from powerlab.store.models import JobRow, SweepCandidateRow, SweepRow
from powerlab.store.queue import of_device

_JOBS = select(JobRow).options(
    joinedload(JobRow.sweep).joinedload(SweepRow.device),
    joinedload(JobRow.sweep).selectinload(SweepRow.candidates).joinedload(SweepCandidateRow.device),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs are wanted; None asks for all. ``after`` is the (created_at, id) of the last one seen."""

    state: SweepState | None = None
    device_id: str | None = None
    sweep_id: str | None = None
    submitter: str | None = None
    limit: int | None = None
    after: tuple[datetime, str] | None = None


def list_jobs(session: Session, wish: JobFilter) -> list[JobRecord]:
    """Return jobs, newest first."""
    wanted = _JOBS.order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(wish.limit)
    if wish.state is not None:
        wanted = wanted.where(JobRow.state == wish.state.value)
    if wish.device_id is not None:
        wanted = wanted.where(of_device(wish.device_id))
    if wish.sweep_id is not None:
        wanted = wanted.where(JobRow.sweep_id == wish.sweep_id)
    if wish.submitter is not None:
        wanted = wanted.join(JobRow.sweep).where(SweepRow.submitter == wish.submitter)
    if wish.after is not None:
        wanted = wanted.where(tuple_(JobRow.created_at, JobRow.id) < wish.after)
    return [to_job(row) for row in session.scalars(wanted)]


def job(session: Session, job_id: str) -> JobRecord:
    """Return one job; raises NotFoundError."""
    row = session.scalar(_JOBS.where(JobRow.id == job_id))
    if row is None:
        raise NotFoundError(f"there is no job {job_id!r}; GET /api/v1/jobs lists them.")
    return to_job(row)
