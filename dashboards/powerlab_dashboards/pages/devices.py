"""The devices page: every device in a line, with what it does and what went wrong lately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fastapi import APIRouter, Response

from powerlab.protocol.fleet import Activity, FleetMember, LastReading
from powerlab.store import Store
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.readings import last_readings
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.phases import PHASE_WORDS
from powerlab_dashboards.render import page

LIMIT = 100
SHOWN: Mapping[str, tuple[str, Callable[[FleetMember], bool]]] = {
    "busy": (mark("busy"), lambda member: member.activity is Activity.BUSY),
    "idle": (mark("idle"), lambda member: member.activity is Activity.IDLE),
    "offline": (mark("offline"), lambda member: member.activity is Activity.OFFLINE),
    "throttled": (mark("throttled in 24 h"), lambda member: member.throttled_runs > 0),
    "failing": (mark("with failures in 24 h"), lambda member: member.failed_runs + member.failed_sweeps > 0),
}
"""Which devices can be asked for, by the word in the address: what it means to people, and to a program."""


def _common_provenance(readings: Sequence[LastReading]) -> str:
    """Return the provenance that all powers share, to be said once; empty where they differ."""
    found = {one.provenance.value for one in readings if one.provenance is not None and one.power_w is not None}
    return found.pop() if len(found) == 1 else ""


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/devices``."""

    @router.get("/devices")
    def devices(after: str = "", name: str = "", show: str = "") -> Response:
        """Show devices sorted by name: those after a name, whose names contain one, or that do something."""
        now = store.clock()
        with store.session() as session:
            members = fleet_status(session, now)
            bookings = list_bookings(session, BookingFilter(ends_after=now))
            readings = last_readings(session, now)
        _, wanted = SHOWN.get(show, ("", lambda _: True))
        found = [
            one
            for one in members
            if one.device.name > after and name.lower() in one.device.name.lower() and wanted(one)
        ]
        return page(
            "devices.html",
            section="devices",
            devices=found[:LIMIT],
            device_count=len(members),
            readings=readings,
            now=now,
            phase_words=PHASE_WORDS,
            power_note=_common_provenance([readings[one.id] for one in found[:LIMIT] if one.id in readings]),
            booked={one.device_id: one for one in reversed(bookings) if one.starts_at <= now},
            name=name,
            show=show if show in SHOWN else "",
            after=after,
            choices={word: title for word, (title, _) in SHOWN.items()},
            more=found[LIMIT - 1].device.name if len(found) > LIMIT else "",
        )
