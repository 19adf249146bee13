"""Scheduling: a device's next job is of the highest priority, then round-robin by submitter, then the oldest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, CompoundSelect, Select, and_, func, or_, select
from sqlalchemy.orm import aliased

from powerlab.protocol.records import SweepState
from powerlab.store.reads.bookings import let_through
from powerlab.store.reads.clusters import all_ask, devices_to_follow
from powerlab.store.tables import BookingRow, JobRow, SweepCandidateRow, SweepRow


def of_device(device_id: str) -> ColumnElement[bool]:
    """Return what is true of the jobs that a device has or may take."""
    candidate = select(SweepCandidateRow.sweep_id).where(SweepCandidateRow.device_id == device_id)
    return or_(JobRow.device_id == device_id, JobRow.sweep_id.in_(candidate))


def waiting(device_id: str, now: datetime, bookings: Sequence[BookingRow]) -> ColumnElement[bool]:
    """Return what is true of a device's jobs, joined with their sweeps, that may be given out.

    Nobody holds them, or not long enough ago, and none of the device's bookings stands in their way.
    """
    return and_(of_device(device_id), to_be_given(now), all_ask(now), *let_through(bookings, now))


def devices_with_jobs(now: datetime) -> CompoundSelect[str]:
    """Return the query for all devices that have, or may take, a job which may be given out, or may follow another.

    Whether a booking of theirs stands in its way is not looked at. It begins with such jobs, which are few: those that
    are over cost it nothing.
    """
    own = select(JobRow.device_id).where(to_be_given(now), all_ask(now))
    theirs = select(SweepCandidateRow.device_id).join(JobRow, JobRow.sweep_id == SweepCandidateRow.sweep_id)
    return own.union(theirs.where(to_be_given(now)), devices_to_follow(now))


def to_be_given(now: datetime) -> ColumnElement[bool]:
    """Return what is true of jobs that nobody holds, or not long enough ago."""
    ran_out = and_(JobRow.state == SweepState.RUNNING.value, JobRow.deadline < now)
    return or_(JobRow.state == SweepState.QUEUED.value, ran_out)


def next_job(device_id: str, now: datetime, bookings: Sequence[BookingRow]) -> Select[JobRow]:
    """Return the query for the job that a device is given next.

    Among equal priorities it is the turn of the submitter to whom this device was given longest ago, so that nobody
    waits for all the sweeps of somebody who asked for many; of one submitter's jobs the oldest comes first.
    """
    earlier, theirs = aliased(JobRow), aliased(SweepRow)
    served_at = (
        select(func.max(earlier.leased_at))
        .join(theirs, theirs.id == earlier.sweep_id)
        .where(earlier.device_id == device_id, theirs.submitter == SweepRow.submitter)
        .correlate(SweepRow)
        .scalar_subquery()
    )
    return (
        select(JobRow)
        .join(SweepRow, SweepRow.id == JobRow.sweep_id)
        .where(waiting(device_id, now, bookings))
        .order_by(JobRow.priority.desc(), served_at.asc().nulls_first(), JobRow.created_at, JobRow.id)
        .limit(1)
    )
