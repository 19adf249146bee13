"""Reservations and maintenance windows of devices."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, status

from powerlab.protocol.access import Role
from powerlab.protocol.bookings import BookingKind, BookingPage, BookingRecord, BookingRequest
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.writes.bookings import book, unbook
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.paging import cut, place_of
from powerlab_api.roles import Caller, Requires, Submitter
from powerlab_api.run_filters import Moment

router = APIRouter(prefix="/bookings", tags=["bookings"])


@router.post("", status_code=status.HTTP_201_CREATED, dependencies=[Requires.operator])
def post_booking(store: StoreDep, submitter: Submitter, request: BookingRequest) -> BookingRecord:
    """Reserve a device for somebody's sweeps, or keep all sweeps from it while it is maintained."""
    with store.write() as session:
        return book(session, request, submitter, store.clock())


@router.get("", dependencies=[Requires.viewer])
def read_bookings(
    session: ReadSession,
    *,
    device_id: str | None = None,
    kind: BookingKind | None = None,
    ends_after: Moment = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> BookingPage:
    """Return bookings, those that begin first first."""
    filters = BookingFilter(
        device_id=device_id,
        kind=kind,
        ends_after=ends_after,
        limit=limit + 1,
        after=place_of(cursor, tuple[datetime, int]),
    )
    items, more = cut(list_bookings(session, filters), limit, lambda one: (one.starts_at, one.id))
    return BookingPage(items=items, next_cursor=more)


@router.delete("/{booking_id}", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.operator])
def delete_booking(store: StoreDep, caller: Caller, booking_id: int) -> None:
    """Remove a booking; a reservation by its holder, whoever made it, or an admin."""
    with store.write() as session:
        unbook(session, booking_id, caller.name, store.clock(), may_all=caller.may_act_as(Role.ADMIN))
