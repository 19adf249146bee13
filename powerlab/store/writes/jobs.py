"""Leases: a device's agent holds a job for a limited time, and only the newest holder may write."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.analysis.summary import searched_figures
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import DoneRun, Finish, Lease, RebootNotice
from powerlab.protocol.records import OVER, SweepState
from powerlab.protocol.wire import from_document
from powerlab.store.errors import ForbiddenError, NotFoundError, StaleLeaseError
from powerlab.store.reads.bookings import bookings_ahead, must_leave
from powerlab.store.reads.clusters import followed, node_rows, wanting
from powerlab.store.reads.queries import runs_of_sweep
from powerlab.store.reads.queue import next_job, to_be_given, waiting
from powerlab.store.tables import JobRow, PointRow, RunRow
from powerlab.store.writes.audit import COMMAND_LINE, record
from powerlab.store.writes.binding import bind
from powerlab.store.writes.clusters import forget_asking, may_follow, part_of, standing_of_node

MOST_WORDS = 300
"""Characters, at most, of what an agent says that its device waits for."""
LEASE_S = 60.0
"""How long a job stays with an agent that says nothing."""
LONGEST_REBOOT_S = 1800.0
"""How long a job stays at most with an agent whose device reboots for it."""


def is_waiting(session: Session, device_id: str, now: datetime) -> bool:
    """Return whether :func:`lease` would find a job, or note that the device asks for one; takes no lock."""
    found = followed(session, device_id, now)
    if found is not None:
        return may_follow(*found)
    if wanting(session, device_id, now, to_be_given(now)):
        return True
    free = waiting(device_id, now, bookings_ahead(session, device_id, now))
    return session.scalar(select(JobRow.id).join(JobRow.sweep).where(free).limit(1)) is not None


def lease(session: Session, device_id: str, now: datetime, lease_s: float = LEASE_S) -> Lease | None:
    """Give the device's next waiting job out, or one whose lease ran out; None where there is none.

    On PostgreSQL the row is locked and rows that others hold are skipped; on SQLite the write transaction that the
    session runs in lets nobody else in.

    A further device of a running job gets that, with its part in it, and no other. One without work is noted as asking,
    for the jobs that wait for it.
    """
    found = followed(session, device_id, now)
    if found is not None:
        return part_of(*found, lease_s) if may_follow(*found) else None
    wanted = next_job(device_id, now, bookings_ahead(session, device_id, now))
    job = session.scalar(wanted.with_for_update(of=JobRow, skip_locked=True))
    if job is None or not bind(session, job, device_id):
        for row in wanting(session, device_id, now, to_be_given(now)):
            row.asked_at = now
        return None
    forget_asking(session, job.sweep_id, device_id)
    return _give_out(session, job, f"device {device_id}", now, lease_s)


def lease_sweep(session: Session, sweep_id: str, now: datetime, lease_s: float) -> Lease:
    """Give the job of one sweep, which nobody holds, to the caller; raises NotFoundError."""
    job = session.scalar(select(JobRow).where(JobRow.sweep_id == sweep_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no sweep {sweep_id!r}.")
    return _give_out(session, job, COMMAND_LINE, now, lease_s)


def _give_out(session: Session, job: JobRow, actor: str, now: datetime, lease_s: float) -> Lease:
    job.state, job.detail = SweepState.RUNNING.value, ""
    job.fencing_token += 1
    job.leased_at = now
    job.deadline = now + timedelta(seconds=lease_s)
    plan = from_document(job.sweep.plan, SweepPlan)
    record(session, now, actor, "lease", job.id, fencing_token=job.fencing_token)
    done = _searched(session, job.sweep_id) if plan.search_percent else _counted(session, job.sweep_id)
    return Lease(
        job_id=job.id,
        sweep_id=job.sweep_id,
        plan=plan,
        fencing_token=job.fencing_token,
        lease_s=lease_s,
        done=done,
        nodes=tuple(row.device.name for row in node_rows(session, job.sweep_id)) if plan.nodes > 1 else (),
    )


def _counted(session: Session, sweep_id: str) -> tuple[DoneRun, ...]:
    """Return the runs of a sweep."""
    wanted = (
        select(PointRow.key, RunRow.repeat)
        .join(RunRow, RunRow.point_id == PointRow.id)
        .where(RunRow.sweep_id == sweep_id)
    )
    return tuple(DoneRun(point_id=key, repeat=repeat) for key, repeat in session.execute(wanted))


def _searched(session: Session, sweep_id: str) -> tuple[DoneRun, ...]:
    """Return the runs of a sweep with what a search learns from them."""
    return tuple(
        DoneRun(point_id=run.point.id, repeat=run.repeat, figures=searched_figures(run))
        for run in runs_of_sweep(session, sweep_id)
    )


def heartbeat(
    session: Session,
    device_id: str,
    job_id: str,
    fencing_token: int,
    now: datetime,
    *,
    lease_s: float = LEASE_S,
    waits: str = "",
) -> SweepState:
    """Hold a job for another ``lease_s`` seconds; also after the deadline, as long as nobody else was given the job.

    ``waits`` is what its device waits for, in words, which the job tells as long as it runs.

    Returns:
        where the job stands; a holder of one that is not running any more ends its run and gives it back. That is
        ``queued`` where the device is booked for others now: released, it waits until they are through.

    Raises:
        StaleLeaseError: nobody holds it now.
        StaleLeaseError, NotFoundError, ForbiddenError: see :func:`held_job`.
    """
    standing = standing_of_node(session, device_id, job_id, fencing_token, now)
    if standing is not None:
        return standing
    job = held_job(session, device_id, job_id, fencing_token)
    if job.deadline is None:
        raise StaleLeaseError(f"the job {job_id} is {job.state}, not running; ask for a new lease.")
    job.deadline = now + timedelta(seconds=lease_s)
    _is_back(job, waits)
    if job.state == SweepState.RUNNING.value and must_leave(session, job, now):
        return SweepState.QUEUED
    return SweepState(job.state)


def announce_reboot(session: Session, device_id: str, job_id: str, notice: RebootNotice, now: datetime) -> SweepState:
    """Wait for a holder whose device reboots for its sweep; a job that is not running any more is left as it is.

    Returns:
        where the job stands; a holder of one that is not running does not reboot.

    Raises:
        PowerlabError: the reboot would take no time or more than half an hour.
        StaleLeaseError, NotFoundError, ForbiddenError: as :func:`heartbeat` does.
    """
    if not 1 <= notice.down_s <= LONGEST_REBOOT_S:
        raise PowerlabError(f"a reboot takes 1 to {LONGEST_REBOOT_S:g} s, not {notice.down_s:g}.")
    state = heartbeat(session, device_id, job_id, notice.fencing_token, now)
    if state is SweepState.RUNNING:
        job = held_job(session, device_id, job_id, notice.fencing_token)
        job.detail, job.deadline = f"rebooting into {notice.mode[:200]}", now + timedelta(seconds=notice.down_s)
        record(session, now, f"device {device_id}", "reboot", job_id, mode=notice.mode[:200], down_s=notice.down_s)
    return state


def release(session: Session, device_id: str, job_id: str, fencing_token: int, now: datetime) -> SweepState:
    """Let go of a job that is not finished, so that it can be given out again at once unless it was paused.

    Returns:
        where the job stands now.

    Raises as :func:`held_job`.
    """
    job = held_job(session, device_id, job_id, fencing_token)
    if job.deadline is not None:
        if job.state == SweepState.RUNNING.value:
            job.state = SweepState.QUEUED.value
            _is_back(job)
        job.deadline = None
        record(session, now, f"device {device_id}", "release", job_id)
    return SweepState(job.state)


def finish(session: Session, device_id: str, job_id: str, message: Finish, now: datetime) -> None:
    """End a job, also a paused one: all of it was measured. A cancelled one stays cancelled, and is let go.

    Saying it again changes nothing. Raises as :func:`held_job`.
    """
    job = held_job(session, device_id, job_id, message.fencing_token)
    if job.state in OVER:
        job.deadline = None
        return
    job.state, job.detail, job.deadline, job.finished_at = message.state, message.detail, None, now
    record(session, now, f"device {device_id}", "finish", job_id, state=message.state)


def _is_back(job: JobRow, waits: str = "") -> None:
    """Forget what a device was waiting for; who paused or cancelled the job, or why it failed, stays."""
    if job.state in {SweepState.RUNNING.value, SweepState.QUEUED.value}:
        job.detail = "".join(filter(str.isprintable, waits))[:MOST_WORDS]


def held_job(session: Session, device_id: str, job_id: str, fencing_token: int) -> JobRow:
    """Return a job whose newest lease has this token, locked until the transaction ends.

    Raises:
        NotFoundError: there is no such job.
        ForbiddenError: it is another device's.
        StaleLeaseError: it was given out again since.
    """
    job = session.scalar(select(JobRow).where(JobRow.id == job_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no job {job_id!r}.")
    return _check_holder(job, device_id, fencing_token)


def held_job_of_sweep(session: Session, device_id: str, sweep_id: str, fencing_token: int) -> JobRow:
    """Do as :func:`held_job` for the job of a sweep."""
    job = session.scalar(select(JobRow).where(JobRow.sweep_id == sweep_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no sweep {sweep_id!r}.")
    return _check_holder(job, device_id, fencing_token)


def held_job_of_run(session: Session, device_id: str, run_id: str, fencing_token: int) -> str:
    """Do as :func:`held_job` for the job of a stored run's sweep, and return the run's verdict."""
    of_run = select(JobRow, RunRow.verdict).join(RunRow, RunRow.sweep_id == JobRow.sweep_id).where(RunRow.id == run_id)
    found = session.execute(of_run.with_for_update(of=JobRow)).one_or_none()
    if found is None:
        raise NotFoundError(f"there is no run {run_id!r}; upload the run before its traces.")
    job, verdict = found
    _check_holder(job, device_id, fencing_token)
    return verdict


def _check_holder(job: JobRow, device_id: str, fencing_token: int) -> JobRow:
    if job.device_id != device_id:
        raise ForbiddenError("this job belongs to another device; an agent may only touch its own device's jobs.")
    if job.fencing_token != fencing_token:
        raise StaleLeaseError(
            f"the lease with fencing token {fencing_token} is over: the job was given out again "
            f"(token {job.fencing_token}); stop, and ask for a new lease."
        )
    return job
