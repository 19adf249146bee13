"""What ``powerlab top`` shows: everything about a device at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from powerlab.domain.quantity import Provenance
from powerlab.readings.clocks import Clock
from powerlab.readings.minute import Recent


@dataclass(frozen=True, slots=True, kw_only=True)
class RailReading:
    """A rail by its key; its ``problem`` says why it has no power now, and is empty where it has one."""

    rail: str
    provenance: Provenance
    recent: Recent
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The device's power: a sum of rails, which there is only where all of them can be read."""

    recent: Recent
    provenance: Provenance
    scope: str
    proposed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Temperature:
    """A temperature in °C, and from which one on the kernel slows the device down (None where it does not say)."""

    name: str
    celsius: float
    limit_c: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything at one moment.

    Attributes:
        device: what people call it.
        board: which board it is.
        mode: the power mode it is in, in words.
        job: what powerlab does to its settings now; empty for nothing.
        uptime_s: since its boot; None where the kernel does not say.
        rails: every rail that a sensor offers.
        total: None where nothing can be read for power.
        clocks: what can be read.
        temperatures: of what computes.
        busy: by processor, the share of the time since the last reading in which it was at work.
        cost_s: processor time that this reading took, programs that sources start not counted.
    """

    device: str
    board: str
    mode: str
    job: str
    uptime_s: float | None
    rails: tuple[RailReading, ...]
    total: Total | None
    clocks: tuple[Clock, ...]
    temperatures: tuple[Temperature, ...]
    busy: Mapping[int, float]
    cost_s: float
