"""The devices page: every device in a line, with what it does and what went wrong lately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response

from powerlab.domain.quantity import Metric
from powerlab.store import Store
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.reads.fleet import NewestRun, newest_runs
from powerlab.store.reads.fleet_status import Activity, FleetMember, fleet_status
from powerlab_dashboards.language import mark
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """What a device's newest usable run says of it: the mode it ran in, its power, how hot it was afterwards."""

    mode: str
    received_at: datetime
    power: Metric | None
    end_temperature: Metric | None


def _last_run(run: NewestRun) -> LastRun:
    metrics = {metric.name: metric for metric in run.metrics}
    return LastRun(
        mode=run.point.mode,
        received_at=run.received_at,
        power=metrics.get("power_w"),
        end_temperature=metrics.get("end_temperature_c"),
    )


def _common_provenance(runs: Sequence[LastRun]) -> str:
    """Return the provenance that all powers share, to be said once; empty where they differ."""
    found = {run.power.provenance.value for run in runs if run.power is not None}
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
            newest = newest_runs(session)
        last_runs = {device_id: _last_run(run) for device_id, run in newest.items()}
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
            last_runs=last_runs,
            power_note=_common_provenance([last_runs[one.id] for one in found[:LIMIT] if one.id in last_runs]),
            booked={one.device_id: one for one in reversed(bookings) if one.starts_at <= now},
            name=name,
            show=show if show in SHOWN else "",
            after=after,
            choices={word: title for word, (title, _) in SHOWN.items()},
            more=found[LIMIT - 1].device.name if len(found) > LIMIT else "",
        )
