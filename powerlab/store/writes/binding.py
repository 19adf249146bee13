"""Claim a multi-device sweep: bind it to the first eligible device that asks."""

from __future__ import annotations

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.wire import from_document
from powerlab.store.tables import DeviceSnapshotRow, JobRow, PointRow, PowerModeRow, SweepCandidateRow
from powerlab.store.writes.points import mode_ids


def bind(session: Session, job: JobRow, device_id: str) -> bool:
    """Make a job's sweep a device's own; False where it is another's.

    The job is locked. On PostgreSQL the query that found it may have seen candidates of a moment before; this looks at
    those of now.
    """
    own = select(SweepCandidateRow).where(
        SweepCandidateRow.sweep_id == job.sweep_id, SweepCandidateRow.device_id == device_id
    )
    candidate = session.scalar(own)
    if candidate is None:
        return job.device_id == device_id
    snapshot = session.get_one(DeviceSnapshotRow, candidate.snapshot_id)
    if job.sweep.snapshot_id != snapshot.id:
        _move_points(session, job, snapshot)
        job.device_id = job.sweep.device_id = device_id
        job.sweep.snapshot_id = snapshot.id
    session.execute(delete(SweepCandidateRow).where(SweepCandidateRow.sweep_id == job.sweep_id))
    session.flush()
    session.expire(job.sweep, ["device", "snapshot", "candidates"])
    return True


def _move_points(session: Session, job: JobRow, snapshot: DeviceSnapshotRow) -> None:
    """Let the points name the modes of another snapshot, which has all of them."""
    there = mode_ids(session, from_document(job.sweep.plan, SweepPlan), snapshot)
    of_sweep = PointRow.sweep_id == job.sweep_id
    here = select(PowerModeRow.id, PowerModeRow.name).join(PointRow).where(of_sweep).distinct()
    for mode_id, name in session.execute(here).all():
        session.execute(
            update(PointRow).where(of_sweep, PointRow.power_mode_id == mode_id).values(power_mode_id=there[name])
        )
