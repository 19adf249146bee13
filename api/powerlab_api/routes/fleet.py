"""The fleet as it is now, in one answer."""

from __future__ import annotations

from fastapi import APIRouter

from powerlab.protocol.fleet import FleetRecord
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.readings import last_readings
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.roles import Requires

router = APIRouter(tags=["devices"])


@router.get("/fleet", dependencies=[Requires.viewer])
def read_fleet(store: StoreDep, session: ReadSession) -> FleetRecord:
    """Return every device: busy, idle or offline, its sweep with phase and time left, and what it read last.

    Readings that are not *fresh* are those of up to five minutes ago: they say nothing of now.
    """
    now = store.clock()
    return FleetRecord(now=now, devices=fleet_status(session, now), readings=last_readings(session, now))
