"""A fleet as it is now: who is there, what is measured, and what each device reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from powerlab.domain.device import Device
from powerlab.domain.quantity import Provenance
from powerlab.protocol.readings import PhaseRecord
from powerlab.protocol.records import SweepRecord

FRESH_S = 30.0
"""Older readings say nothing of now: an idle agent sends one every ten seconds."""


class Activity(StrEnum):
    """What a device does."""

    BUSY = "busy"
    IDLE = "idle"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSweep:
    """A sweep that an agent holds.

    Attributes:
        record: the sweep.
        left_s: how much longer its runs take, about, in s: the share of the time expected for all; None where that is
            unknown.
        silent: whether its agent has said nothing for longer than its lease.
        phase: what it does; None where its agent has not said.
    """

    record: SweepRecord
    left_s: float | None
    silent: bool
    phase: PhaseRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A device as it is now.

    Attributes:
        id: a UUID.
        device: as its agent described it last.
        seen_at: when its agent last spoke to a server, UTC.
        activity: busy while its agent holds a job, idle, or offline.
        running: the sweep that it carries out; None where it does none.
        failed_runs: runs of the last day that failed.
        failed_sweeps: sweeps of the last day that failed.
        throttled_runs: runs of the last day that were slowed down by heat, power or current.
    """

    id: str
    device: Device
    seen_at: datetime
    activity: Activity
    running: RunningSweep | None
    failed_runs: int
    failed_sweeps: int
    throttled_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReading:
    """What a list of devices shows of one.

    Attributes:
        at: when it was read, UTC.
        fresh: whether that is now; an older one is still told, as old.
        power_w: board power; None where it cannot be read.
        provenance: of that; None where there is no board power at all.
        hottest_c: the hottest temperature; None where none can be read.
        clock_mhz: the fastest processor clock; None where none can be read.
        mode: the power mode.
        history: seconds since ``at`` (0 or less) and power of the last minutes, oldest first.
    """

    at: datetime
    fresh: bool
    power_w: float | None
    provenance: Provenance | None
    hottest_c: float | None
    clock_mhz: float | None
    mode: str
    history: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """Every device in the order of their names, and by device id what each reads.

    Attributes:
        now: when this was so by the server's clock, UTC: ages are differences to it.
        devices: all of them.
        readings: of those that have sent some in the last minutes.
    """

    now: datetime
    devices: tuple[FleetMember, ...]
    readings: Mapping[str, LastReading]


def powers_by_provenance(readings: Iterable[LastReading | None]) -> dict[Provenance, list[float]]:
    """Return the power in W of devices that read some, apart by provenance: measured is not added to an estimate."""
    found: dict[Provenance, list[float]] = defaultdict(list)
    for reading in readings:
        if reading is not None and reading.power_w is not None and reading.provenance is not None:
            found[reading.provenance].append(reading.power_w)
    return {provenance: found[provenance] for provenance in Provenance if provenance in found}
