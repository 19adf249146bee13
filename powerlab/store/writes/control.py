"""Pause, resume and cancel a sweep. Idempotent.

The fencing token stays as it is, and so does the deadline of a job that is held: its holder learns of the change from
its next heartbeat, hands in what it has measured and lets go (:func:`powerlab.store.writes.jobs.release`).
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.protocol.records import OVER, SweepState
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.tables import JobRow
from powerlab.store.writes.audit import record


def pause(session: Session, sweep_id: str, by: str, now: datetime) -> None:
    """Give a sweep's job to nobody until it is resumed.

    Raises:
        NotFoundError: there is no such sweep.
        ConflictError: it is over.
    """
    job = _job_that_is_not_over(session, sweep_id, "paused")
    if job.state != SweepState.PAUSED.value:
        job.state, job.detail = SweepState.PAUSED.value, f"paused by {by}"
        record(session, now, by, "pause", job.id)


def resume(session: Session, sweep_id: str, by: str, now: datetime) -> None:
    """Let a paused sweep go on: with the agent that still holds it, else with whoever leases it next.

    Raises as :func:`pause`.
    """
    job = _job_that_is_not_over(session, sweep_id, "resumed")
    if job.state != SweepState.PAUSED.value:
        return
    held = job.deadline is not None and job.deadline >= now
    job.state, job.detail = (SweepState.RUNNING if held else SweepState.QUEUED).value, ""
    job.deadline = job.deadline if held else None
    record(session, now, by, "resume", job.id)


def cancel(session: Session, sweep_id: str, by: str, now: datetime) -> None:
    """End a sweep before its end; the runs that it has stay. Raises as :func:`pause`, but for a cancelled one."""
    job = _job(session, sweep_id)
    if job.state == SweepState.CANCELLED.value:
        return
    _check_not_over(job, "cancelled")
    job.state, job.detail, job.finished_at = SweepState.CANCELLED.value, f"cancelled by {by}", now
    record(session, now, by, "cancel", job.id)


def _job_that_is_not_over(session: Session, sweep_id: str, verb: str) -> JobRow:
    job = _job(session, sweep_id)
    _check_not_over(job, verb)
    return job


def _check_not_over(job: JobRow, verb: str) -> None:
    if job.state in OVER:
        raise ConflictError(f"the sweep {job.sweep_id} is {job.state}; only one that is not over can be {verb}.")


def _job(session: Session, sweep_id: str) -> JobRow:
    """Return a sweep's job, locked until the transaction ends."""
    job = session.scalar(select(JobRow).where(JobRow.sweep_id == sweep_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no sweep {sweep_id!r}; `powerlab sweep list` (GET /api/v1/sweeps) lists them.")
    return job
