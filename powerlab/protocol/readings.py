"""Telemetry: what a device reads now, sent by its agent while no figure is being measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class RailPower:
    """A rail's power in W; where it has none now, ``problem`` says why."""

    rail: str
    provenance: Provenance
    power_w: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalPower:
    """The device's power in W as a sum of rails; None while one of them cannot be read."""

    provenance: Provenance
    scope: str
    power_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockNow:
    """A clock in MHz, and what limits it to (None where nothing says so)."""

    name: str
    clock_mhz: float
    limit_mhz: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureNow:
    """A temperature in °C, and from which one on the device is slowed down (None where it does not say)."""

    name: str
    celsius: float
    limit_c: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A device at one moment.

    Attributes:
        mode: the power mode it is in.
        total: its power; None where its rails do not add up to one.
        rails: every rail that a sensor offers.
        clocks: those that can be read.
        temperatures: of what computes.
        load: by processor, the share of the time since the last reading in which it was at work.
    """

    mode: str
    total: TotalPower | None = None
    rails: tuple[RailPower, ...] = ()
    clocks: tuple[ClockNow, ...] = ()
    temperatures: tuple[TemperatureNow, ...] = ()
    load: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """A snapshot taken ``age_s`` seconds before it was sent: a device's clock may be wrong."""

    age_s: float
    seen: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """What a sweep is doing on its device.

    Attributes:
        sweep_id: which sweep.
        phase: what it does.
        point: what the run in progress measures; None where there is none.
        run_index: number of that run, from 1; 0 where there is none.
        run_count: of so many that this agent makes; 0 where it does not know yet.
        left_s: how much longer the phase takes, about, in s; None where nobody can say.
    """

    sweep_id: str
    phase: RunPhase
    point: Point | None = None
    run_index: int = 0
    run_count: int = 0
    left_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingsUpload:
    """Readings, oldest first, and where a sweep stands if that has changed."""

    readings: tuple[DeviceReading, ...] = ()
    phase: PhaseReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingsReply:
    """How often the server wants readings, in s: more often while somebody watches."""

    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRecord:
    """A stored snapshot and when it was taken, UTC, by the server's clock."""

    at: datetime
    seen: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """A stored phase: since when, and until about when (None where nobody can say), UTC."""

    sweep_id: str
    phase: RunPhase
    since: datetime
    ends_at: datetime | None
    point: Point | None
    run_index: int
    run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRecord:
    """Readings of a device, oldest first, and the phase that its agent reported last."""

    readings: tuple[ReadingRecord, ...]
    phase: PhaseRecord | None
