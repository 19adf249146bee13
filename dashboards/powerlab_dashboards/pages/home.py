"""The home page: all sweeps with their progress, and all devices."""

from __future__ import annotations

from fastapi import APIRouter, Response

from powerlab.domain.device import Capabilities
from powerlab.protocol.records import OVER, SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.filters import DeviceFilter
from powerlab_dashboards.render import page

SWEEP_LIMIT = 100
DEVICE_LIMIT = 50
UNFINISHED = tuple(state for state in SweepState if state not in OVER)
STATE_WORDS = {
    SweepState.QUEUED: "queued",
    SweepState.RUNNING: "running",
    SweepState.PAUSED: "paused",
    SweepState.CANCELLED: "cancelled",
    SweepState.DONE: "finished",
    SweepState.FAILED: "failed",
}


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/``."""

    @router.get("/")
    def home() -> Response:
        with store.session() as session:
            sweeps = queries.list_sweeps(session, limit=SWEEP_LIMIT)
            devices = queries.list_devices(session, DeviceFilter(limit=DEVICE_LIMIT))
        return page(
            "home.html",
            section="sweeps",
            sweeps=sweeps,
            sweep_limit=SWEEP_LIMIT,
            device_limit=DEVICE_LIMIT,
            unfinished_states=UNFINISHED,
            state_words=STATE_WORDS,
            unfinished=any(sweep.state in UNFINISHED for sweep in sweeps),
            devices=[(record, power_words(record.capabilities)) for record in devices],
        )


def power_words(capabilities: Capabilities) -> str:
    """Return the provenance of a device's board power, such as ``measured``; empty if no rail can be read."""
    if capabilities.total is None:
        return ""
    rails = {rail.key: rail for probe in capabilities.sources for rail in probe.rails}
    found = {rails[key].provenance.value for key in capabilities.total.rails if key in rails}
    return " and ".join(sorted(found))
