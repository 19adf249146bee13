"""Create and cancel bookings of devices."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.bookings import BookingKind, BookingRecord, BookingRequest
from powerlab.store.errors import ConflictError, ForbiddenError, NotFoundError
from powerlab.store.reads.bookings import to_booking
from powerlab.store.tables import BookingRow, DeviceRow
from powerlab.store.writes.audit import record

LONGEST = 200
"""Characters of a reason and of a holder's name."""


def book(session: Session, request: BookingRequest, by: str, now: datetime) -> BookingRecord:
    """Book a device.

    Raises:
        NotFoundError: there is no such device.
        ConflictError: it has a booking of that kind at that time.
        PowerlabError: the times, the holder or the reason cannot be.
    """
    _check(request, now)
    if session.get(DeviceRow, request.device_id) is None:
        raise NotFoundError(f"there is no device {request.device_id!r}; GET /api/v1/devices lists them.")
    row = BookingRow(
        device_id=request.device_id,
        kind=request.kind.value,
        holder=(request.holder or by) if request.kind is BookingKind.RESERVATION else None,
        starts_at=request.starts_at,
        ends_at=request.ends_at,
        reason=request.reason,
        made_by=by,
        made_at=now,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError as error:
        if "ex_booking_overlap" not in str(error.orig):
            raise
        raise ConflictError(_overlapping(session, request)) from error
    record(session, now, by, f"book {request.kind}", request.device_id, booking=row.id)
    return to_booking(row)


def unbook(session: Session, booking_id: int, by: str, now: datetime, *, may_all: bool) -> None:
    """Remove a booking.

    Raises:
        NotFoundError: there is no such booking.
        ForbiddenError: it is somebody else's reservation, and who asks may not remove all (``may_all``).
    """
    row = session.get(BookingRow, booking_id, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no booking {booking_id}; `powerlab devices bookings` lists them.")
    if row.kind == BookingKind.RESERVATION.value and not may_all and by not in (row.holder, row.made_by):
        raise ForbiddenError(
            f"this reservation belongs to {row.holder}; only {row.holder}, {row.made_by} or an admin may remove it."
        )
    session.delete(row)
    record(session, now, by, f"remove {row.kind}", row.device_id, booking=booking_id)


def _check(request: BookingRequest, now: datetime) -> None:
    if request.starts_at.tzinfo is None or request.ends_at.tzinfo is None:
        raise PowerlabError("a booking's times need a zone; write them as 2026-01-31T08:00:00Z.")
    if request.ends_at <= request.starts_at:
        raise PowerlabError("the booking ends before it begins; give a later end.")
    if request.ends_at <= now:
        raise PowerlabError("the booking is over already; give a later end.")
    if request.kind is BookingKind.MAINTENANCE and request.holder:
        raise PowerlabError("a maintenance window has no holder; omit the holder, or make a reservation.")
    if max(len(request.reason), len(request.holder)) > LONGEST:
        raise PowerlabError(f"a booking's reason and its holder's name have up to {LONGEST} letters.")


def _overlapping(session: Session, request: BookingRequest) -> str:
    other = session.scalar(
        select(BookingRow).where(
            BookingRow.device_id == request.device_id,
            BookingRow.kind == request.kind.value,
            BookingRow.starts_at < request.ends_at,
            BookingRow.ends_at > request.starts_at,
        )
    )
    if other is None:  # it was removed since
        return f"the device had another {request.kind} at that time a moment ago; try again."
    whose = f" for {other.holder}" if other.holder else ""
    span = f"from {other.starts_at:%Y-%m-%d %H:%M} to {other.ends_at:%Y-%m-%d %H:%M} UTC"
    return f"the device has a {request.kind}{whose} {span} (booking {other.id}); take another time, or remove that one."
