"""Queries of bookings: who may use a device when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, false, or_, select, tuple_
from sqlalchemy.orm import Session, joinedload

from powerlab.protocol.bookings import BookingKind, BookingRecord
from powerlab.store.tables import BookingRow, JobRow, SweepNodeRow, SweepRow


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingFilter:
    """Which bookings are wanted; None asks for all. ``after`` is the (starts_at, id) of the last one seen."""

    device_id: str | None = None
    kind: BookingKind | None = None
    ends_after: datetime | None = None
    limit: int | None = None
    after: tuple[datetime, int] | None = None


def list_bookings(session: Session, filters: BookingFilter) -> list[BookingRecord]:
    """Return bookings, those that begin first first."""
    wanted = select(BookingRow).options(joinedload(BookingRow.device)).limit(filters.limit)
    if filters.device_id is not None:
        wanted = wanted.where(BookingRow.device_id == filters.device_id)
    if filters.kind is not None:
        wanted = wanted.where(BookingRow.kind == filters.kind.value)
    if filters.ends_after is not None:
        wanted = wanted.where(BookingRow.ends_at > filters.ends_after)
    if filters.after is not None:
        wanted = wanted.where(tuple_(BookingRow.starts_at, BookingRow.id) > filters.after)
    return [to_booking(row) for row in session.scalars(wanted.order_by(BookingRow.starts_at, BookingRow.id))]


def to_booking(row: BookingRow) -> BookingRecord:
    """Return what a row says."""
    return BookingRecord(
        id=row.id,
        device_id=row.device_id,
        device_name=row.device.name,
        kind=BookingKind(row.kind),
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        holder=row.holder,
        reason=row.reason,
        made_by=row.made_by,
        made_at=row.made_at,
    )


def bookings_ahead(session: Session, device_id: str, now: datetime) -> Sequence[BookingRow]:
    """Return a device's bookings that are not over."""
    ahead = select(BookingRow).where(BookingRow.device_id == device_id, BookingRow.ends_at > now)
    return session.scalars(ahead).all()


def let_through(bookings: Sequence[BookingRow], now: datetime) -> Iterator[ColumnElement[bool]]:
    """Yield what is true of jobs, joined with their sweeps, that no booking keeps from beginning now.

    A job of somebody else must be over, as far as is known, before a booking begins; of one that says nothing of how
    long it takes, nothing is known.
    """
    for one in bookings:
        left_s = (one.starts_at - now).total_seconds()
        fits = or_(JobRow.expected_s.is_(None), JobRow.expected_s <= left_s) if left_s > 0 else false()
        yield fits if one.holder is None else or_(SweepRow.submitter == one.holder, fits)


def must_leave(session: Session, job: JobRow, now: datetime) -> bool:
    """Return whether a booking that has begun, of any of its devices, keeps a job from going on."""
    others = select(SweepNodeRow.device_id).where(SweepNodeRow.sweep_id == job.sweep_id)
    of_it = or_(BookingRow.device_id == job.device_id, BookingRow.device_id.in_(others))
    begun = session.scalars(select(BookingRow).where(of_it, BookingRow.starts_at <= now, BookingRow.ends_at > now))
    return any(one.holder is None or one.holder != job.sweep.submitter for one in begun)
