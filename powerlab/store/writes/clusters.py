"""The further devices of a job: they ask for it, meet the first one, and follow it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import Lease, NodePart
from powerlab.protocol.records import SweepState
from powerlab.protocol.wire import from_document
from powerlab.store.errors import StaleLeaseError
from powerlab.store.reads.clusters import node_rows
from powerlab.store.reads.eligible_devices import Candidate
from powerlab.store.reads.fleet_status import OFFLINE_AFTER_S
from powerlab.store.tables import JobRow, SweepNodeRow

_LONGEST = {"address": 300, "secret": 100}


def add_nodes(session: Session, sweep_id: str, others: Sequence[Candidate]) -> None:
    """Add the further devices of a sweep."""
    for rank, other in enumerate(others, start=1):
        session.add(SweepNodeRow(sweep_id=sweep_id, device_id=other.record.id, rank=rank))


def check_together(devices: Sequence[Candidate], now: datetime) -> None:
    """Raise PowerlabError where devices cannot train together: one stands there twice, or is not there."""
    names = [one.record.device.name for one in devices]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise PowerlabError(f"the device {twice} is named twice; name every device of a cluster once.")
    for name, one in zip(names, devices, strict=True):
        away_s = (now - one.record.seen_at).total_seconds()
        if away_s > OFFLINE_AFTER_S:
            raise PowerlabError(
                f"the device {name} is offline: it was not heard of for {away_s / 60:.0f} min, and several devices "
                "begin together; start its agent, or leave it out."
            )


def forget_asking(session: Session, sweep_id: str, device_id: str) -> None:
    """Note that a device, and the further devices of its sweep, have work now."""
    busy = select(SweepNodeRow.device_id).where(SweepNodeRow.sweep_id == sweep_id)
    theirs = SweepNodeRow.device_id.in_({device_id, *session.scalars(busy)})
    asking = SweepNodeRow.asked_at.is_not(None)
    session.execute(update(SweepNodeRow).where(theirs, asking).values(asked_at=None))


def meet(session: Session, job: JobRow, address: str, secret: str) -> None:
    """Note where the holder of a job waits for its further devices.

    Raises:
        PowerlabError: the sweep has none, or the words are empty or too long.
    """
    rows = node_rows(session, job.sweep_id)
    if not rows:
        raise PowerlabError(f"the sweep {job.sweep_id} is carried out by one device, which waits for no other.")
    for name, word in (("address", address), ("secret", secret)):
        if not 1 <= len(word) <= _LONGEST[name]:
            raise PowerlabError(f"the {name} has 1 to {_LONGEST[name]} characters, not {len(word)}.")
    for row in rows:
        row.fencing_token, row.address, row.secret = job.fencing_token, address, secret


def may_follow(row: SweepNodeRow, job: JobRow) -> bool:
    """Return whether the first device waits for this one."""
    return row.fencing_token == job.fencing_token and row.address is not None


def part_of(row: SweepNodeRow, job: JobRow, lease_s: float) -> Lease:
    """Return a running job for a further device."""
    return Lease(
        job_id=job.id,
        sweep_id=job.sweep_id,
        plan=from_document(job.sweep.plan, SweepPlan),
        fencing_token=job.fencing_token,
        lease_s=lease_s,
        done=(),
        part=NodePart(address=row.address or "", secret=row.secret or ""),
    )


def standing_of_node(
    session: Session, device_id: str, job_id: str, fencing_token: int, now: datetime
) -> SweepState | None:
    """Return where a job stands for a further device of it; None where the device is none.

    One whose first device was not heard of for too long is queued: its further devices may do something else.

    Raises:
        StaleLeaseError: it was given out again since.
    """
    wanted = select(JobRow).join(SweepNodeRow, SweepNodeRow.sweep_id == JobRow.sweep_id)
    job = session.scalar(wanted.where(JobRow.id == job_id, SweepNodeRow.device_id == device_id))
    if job is None:
        return None
    if job.fencing_token != fencing_token:
        raise StaleLeaseError(f"the job {job_id} was given out again (token {job.fencing_token}); ask for a new lease.")
    if job.state == SweepState.RUNNING.value and job.deadline is not None and job.deadline < now:
        return SweepState.QUEUED
    return SweepState(job.state)
