"""A device: what it reads and does now, its sweeps, its power modes, its sensors, and who has booked it."""

from __future__ import annotations

from fastapi import APIRouter, Response

from powerlab.domain.device import Capabilities
from powerlab.domain.power import Availability
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.readings import SHOWN, last_readings, live
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.home import STATE_WORDS, UNFINISHED
from powerlab_dashboards.pages.live_curves import curves_of
from powerlab_dashboards.pages.phases import PHASE_WORDS
from powerlab_dashboards.pages.sweep_list import listed
from powerlab_dashboards.render import not_found, page

TABS = {
    "": mark("Live"),
    "history": mark("History"),
    "modes": mark("Modes"),
    "sensors": mark("Sensors"),
    "bookings": mark("Bookings"),
}
"""The parts of a device's page, by the last word of their addresses."""
HISTORY_LIMIT = 50


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/devices/{id}`` and its parts."""

    @router.get("/devices/{device_id}")
    def device_now(device_id: str) -> Response:
        return _part(store, device_id, "")

    @router.get("/devices/{device_id}/{tab}")
    def device_part(device_id: str, tab: str) -> Response:
        if tab not in TABS:
            return not_found(f"A device's page has no part named {tab}; there are {', '.join(filter(None, TABS))}.")
        return _part(store, device_id, tab)


def _part(store: Store, device_id: str, tab: str) -> Response:
    now = store.clock()
    try:
        with store.session() as session:
            record = queries.device(session, device_id)
            (member,) = fleet_status(session, now, device_id=device_id)
            bookings = list_bookings(session, BookingFilter(device_id=device_id, ends_after=now))
            found = queries.list_sweeps(session, SweepFilter(device_id=device_id), limit=HISTORY_LIMIT)
            shown = live(session, device_id, now - SHOWN)[0].readings if not tab else ()
            reading = last_readings(session, now, [device_id]).get(device_id) if not tab else None
            sweeps = listed(session, found if tab == "history" else found[:1])
    except NotFoundError as error:
        return not_found(str(error))
    sources = record.capabilities.sources
    seen = shown[-1].seen if shown else None
    return page(
        "device.html",
        section="devices",
        tabs=TABS,
        tab=tab,
        entry=record,
        member=member,
        now=now,
        bookings=bookings,
        sweeps=sweeps,
        history_limit=HISTORY_LIMIT,
        state_words=STATE_WORDS,
        unfinished_states=UNFINISHED,
        present=[probe for probe in sources if probe.availability is not Availability.ABSENT],
        absent=[probe for probe in sources if probe.availability is Availability.ABSENT],
        power_provenances=power_provenances(record.capabilities),
        reading=reading,
        seen=seen,
        mean_load=100 * sum(seen.load) / len(seen.load) if seen and seen.load else None,
        curves=curves_of(shown, now),
        phase_words=PHASE_WORDS,
        failed_checks=[check for check in record.checks if not check.passed],
    )


def power_provenances(capabilities: Capabilities) -> list[str]:
    """Return the provenances of a device's board power, such as ``measured``; empty if no rail can be read."""
    if capabilities.total is None:
        return []
    rails = {rail.key: rail for probe in capabilities.sources for rail in probe.rails}
    return sorted({rails[key].provenance.value for key in capabilities.total.rails if key in rails})
