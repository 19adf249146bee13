"""The fleet at a glance: a few counts, each of which leads to what it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.protocol.fleet import Activity, FleetMember, LastReading, powers_by_provenance
from powerlab_dashboards.format import count, significant
from powerlab_dashboards.language import gettext as _


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A count.

    Attributes:
        title: of what.
        figure: how many.
        detail: a few words below it.
        address: the page that lists them.
        alarming: whether somebody should have a look.
    """

    title: str
    figure: str
    detail: str
    address: str
    alarming: bool = False


def tiles_of(members: Sequence[FleetMember]) -> list[Tile]:
    """Return the tiles of a fleet; none of an empty one."""
    if not members:
        return []
    by_activity = {one: [member for member in members if member.activity is one] for one in Activity}
    offline, busy = by_activity[Activity.OFFLINE], by_activity[Activity.BUSY]
    throttled = [member for member in members if member.throttled_runs]
    failed_runs = sum(member.failed_runs for member in members)
    failed_sweeps = sum(member.failed_sweeps for member in members)
    return [
        Tile(
            title=_("Online"),
            figure=f"{len(members) - len(offline)}",
            detail=_("of %(devices)s", devices=count(len(members), "device")),
            address="/devices",
        ),
        Tile(title=_("Busy"), figure=f"{len(busy)}", detail=_("measuring now"), address="/devices?show=busy"),
        Tile(
            title=_("Offline"),
            figure=f"{len(offline)}",
            detail=_names(offline) or _("every agent answers"),
            address="/devices?show=offline",
            alarming=bool(offline),
        ),
        Tile(
            title=_("Throttled, 24 h"),
            figure=f"{sum(member.throttled_runs for member in members)}",
            detail=_("runs on %(devices)s", devices=_names(throttled)) if throttled else _("no run was slowed down"),
            address="/devices?show=throttled",
            alarming=bool(throttled),
        ),
        Tile(
            title=_("Failures, 24 h"),
            figure=f"{failed_runs + failed_sweeps}",
            detail=f"{count(failed_runs, 'run')}, {count(failed_sweeps, 'sweep')}",
            address="/devices?show=failing",
            alarming=bool(failed_runs + failed_sweeps),
        ),
    ]


def power_tiles(members: Sequence[FleetMember], readings: Mapping[str, LastReading]) -> list[Tile]:
    """Return the power of the fleet now, a tile for each provenance: what was measured is not added to an estimate."""
    now = (readings.get(member.id) for member in members)
    return [
        Tile(
            title=_("Power now, %(provenance)s", provenance=_(provenance.value)),
            figure=f"{significant(sum(power_w))} W",
            detail=_("of %(devices)s", devices=count(len(power_w), "device")),
            address="/devices",
        )
        for provenance, power_w in powers_by_provenance(one for one in now if one is not None and one.fresh).items()
    ]


def _names(members: Sequence[FleetMember]) -> str:
    """Return the name of one device, or how many there are."""
    return members[0].device.name if len(members) == 1 else count(len(members), "device") if members else ""
