"""What the server answers to readers: stored things with their identifiers and states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.layers import LayerProfile
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan


class SweepState(StrEnum):
    """Where a sweep stands: queued -> running -> done or failed; a lost or returned lease leads back to queued."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """An enrolled device, as its agent described it last.

    Attributes:
        id: a UUID given at enrolment.
        device: what it is.
        capabilities: what it can measure and set.
        enrolled_at: UTC.
        seen_at: when its agent last spoke to the server, UTC.
    """

    id: str
    device: Device
    capabilities: Capabilities
    enrolled_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A sweep on the server.

    Attributes:
        id: a UUID.
        device_id: where it runs.
        device_name: that device's name.
        simulated: whether that device is a simulated board.
        plan: what was asked for.
        state: queued, running, done or failed.
        detail: why it failed; empty otherwise.
        created_at: UTC.
        finished_at: UTC; None while it is not over.
        planned_run_count: points x repeats; as many as have arrived where a plan goes on until it knows enough.
        stored_run_count: runs that have arrived, whatever their verdict.
    """

    id: str
    device_id: str
    device_name: str
    simulated: bool
    plan: SweepPlan
    state: SweepState
    detail: str
    created_at: datetime
    finished_at: datetime | None
    planned_run_count: int
    stored_run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePage:
    """Every device, in the order of their names."""

    items: tuple[DeviceRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPage:
    """Some sweeps, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[SweepRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Some runs in the order in which they arrived; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[Run, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProfilePage:
    """Some layer profiles, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[LayerProfile, ...]
    next_cursor: str | None = None
