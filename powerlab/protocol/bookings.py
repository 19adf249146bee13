"""Messages about bookings of devices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class BookingKind(StrEnum):
    """What a device is booked for: somebody's sweeps alone, or none at all."""

    RESERVATION = "reservation"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingRequest:
    """Asks for a device from ``starts_at`` until, and without, ``ends_at``; both carry their zone.

    Attributes:
        device_id: the device.
        kind: what for.
        starts_at: the first moment.
        ends_at: the first moment after it.
        holder: whose sweeps alone are given out, as the log of what was done calls them; empty is whoever asks. A
            maintenance window has none.
        reason: for people.
    """

    device_id: str
    kind: BookingKind
    starts_at: datetime
    ends_at: datetime
    holder: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingRecord:
    """A device that is booked; fields as of :class:`BookingRequest`, and who asked when. Times are UTC."""

    id: int
    device_id: str
    device_name: str
    kind: BookingKind
    starts_at: datetime
    ends_at: datetime
    holder: str | None
    reason: str
    made_by: str
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingPage:
    """Some bookings, those that begin first first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[BookingRecord, ...]
    next_cursor: str | None = None
