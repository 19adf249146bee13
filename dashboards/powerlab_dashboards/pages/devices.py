"""The devices page: what each device can measure and set, and remedies for what it cannot."""

from __future__ import annotations

from fastapi import APIRouter, Response

from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.reads.filters import DeviceFilter
from powerlab_dashboards.render import page

LIMIT = 25
_LAST = "~"
"""After every identifier; names are unique."""


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/devices``."""

    @router.get("/devices")
    def devices(after: str = "", name: str = "") -> Response:
        """Show devices sorted by name: those after a name, or those whose names contain one."""
        filters = DeviceFilter(name=name or None, after=(after, _LAST) if after else None, limit=LIMIT + 1)
        with store.session() as session:
            records = queries.list_devices(session, filters)
            booked = list_bookings(session, BookingFilter(ends_after=store.clock()))
        more = records[LIMIT - 1].device.name if len(records) > LIMIT else ""
        chosen = after or name
        return page(
            "devices.html", section="devices", devices=records[:LIMIT], bookings=booked, chosen=chosen, more=more
        )
