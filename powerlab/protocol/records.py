"""Records that the server returns to readers: stored objects with identifiers and states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from powerlab.domain.device import Capabilities, Device, SelfCheck
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Part, Rail
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run, Verdict
from powerlab.domain.selector import Selector
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Workload


class SweepState(StrEnum):
    """Where a sweep and its job stand; :mod:`powerlab.protocol.messages` draws how one leads to the other."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"

    @property
    def label(self) -> str:
        """The state as people read it; the stored word for ``finished`` is ``done``."""
        return "finished" if self is SweepState.DONE else self.value


OVER = (SweepState.DONE, SweepState.FAILED, SweepState.CANCELLED)
"""States in which nothing is measured any more; only further repeats lead out of the first two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogRecord:
    """What a device's agent had not uploaded when it said so last; fields as of :class:`messages.Backlog`.

    Attributes:
        said_at: when that last changed, UTC.
        oldest_since: since when the oldest run waits, UTC, by the server's clock; None where none does or nobody knows.
    """

    said_at: datetime
    runs: int
    refused_runs: int
    chunks: int
    size_bytes: int
    oldest_since: datetime | None
    shed_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRecord:
    """An enrolled device, as its agent described it last.

    Attributes:
        id: a UUID given at enrolment.
        device: what it is.
        capabilities: what it can measure and set.
        enrolled_at: UTC.
        seen_at: when its agent last spoke to the server, UTC.
        checks: what its agent found when it checked itself at its last start.
        labels: what its lab says of it, ``key=value`` or a word, in the order of the keys.
        backlog: what its agent has not uploaded yet; None where it never said.
    """

    id: str
    device: Device
    capabilities: Capabilities
    enrolled_at: datetime
    seen_at: datetime
    checks: tuple[SelfCheck, ...] = ()
    labels: tuple[str, ...] = ()
    backlog: BacklogRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A sweep on the server.

    Attributes:
        id: a UUID.
        device_id: where it runs.
        device_name: that device's name.
        simulated: whether that device is a simulated board.
        plan: what was asked for.
        state: where it stands.
        detail: why it failed, who paused or cancelled it, or that its device reboots or cools down for it; empty
            otherwise.
        created_at: UTC.
        finished_at: UTC; None while it is not over.
        planned_run_count: points x repeats; as many as have arrived where a plan goes on until it knows enough, or
            where a search is done.
        stored_run_count: runs that have arrived, whatever their verdict.
        priority: of those that wait for a device, the highest comes first.
        submitter: who asked for it.
        held_until: until when an agent holds it, UTC, unless it says more; None while nobody does. A paused or
            cancelled sweep is held until the run in progress is over.
        cloned_from: the sweep it repeats; None for one of its own.
        any_of: which devices could take it; None where one device was named.
        candidates: names of the devices of which the first that is free takes it; none once it has its device. Until
            then ``device_id`` is one of them.
        campaign_id: the campaign it is part of.
        nodes: names of the devices that carry it out together with the first one.
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
    priority: int = 0
    submitter: str = ""
    held_until: datetime | None = None
    cloned_from: str | None = None
    any_of: Selector | None = None
    candidates: tuple[str, ...] = ()
    campaign_id: str | None = None
    nodes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it runs, in words, or which devices may take it."""
        if self.nodes:
            return f"{self.device_name} with {', '.join(self.nodes)}"
        return f"any of {', '.join(self.candidates)}" if self.candidates else self.device_name

    @property
    def interrupted(self) -> bool | None:
        """Whether it was ended before its end; None while it goes on."""
        return self.state is not SweepState.DONE if self.state in OVER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A sweep's place in its device's queue.

    Attributes:
        id: a UUID.
        sweep_id: the sweep that it carries out.
        device_id: where.
        device_name: that device's name.
        state: where it stands.
        priority: the highest comes first.
        submitter: who asked for it; among equal priorities the one who was served longest ago comes first.
        detail: why it failed, who paused or cancelled it, or that its device reboots or cools down for it; empty
            otherwise.
        created_at: UTC.
        leased_at: when it was given out last, UTC; None where it never was.
        held_until: until when an agent holds it, UTC, unless it says more; None while nobody does.
        finished_at: UTC; None while it is not over.
        candidates: names of the devices that may take it; none once it has its device.
    """

    id: str
    sweep_id: str
    device_id: str
    device_name: str
    state: SweepState
    priority: int
    submitter: str
    detail: str
    created_at: datetime
    leased_at: datetime | None
    held_until: datetime | None
    finished_at: datetime | None
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePreview:
    """What a plan would ask of one of several devices; fields as of :class:`SweepPreview`."""

    device_id: str
    device_name: str
    simulated: bool
    expected_s: float | None
    longest_s: float | None
    complaints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPreview:
    """What a plan would ask of a device; nothing is stored.

    Of several devices it says what it would ask of the slowest, and all that speaks against any of them.

    Attributes:
        device_id: the device.
        device_name: its name.
        simulated: whether it is a simulated board.
        point_count: combinations of the plan's dimensions.
        points: the first of them, in the plan's order.
        run_count: points x repeats; more where the plan goes on until it knows enough, fewer where it is searched.
        expected_s: how long the runs take, about; None where the plan cannot be carried out.
        longest_s: the same where every warm-up and every cool-down lasts as long as it may.
        basis: what the two times are worked out from.
        complaints: why the device cannot carry out the plan, a sentence each; empty where it can.
        candidates: each of several devices; none where one was named.
    """

    device_id: str
    device_name: str
    simulated: bool
    point_count: int
    points: tuple[Point, ...]
    run_count: int
    expected_s: float | None
    longest_s: float | None
    basis: str
    complaints: tuple[str, ...]
    candidates: tuple[CandidatePreview, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[JobRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePage:
    """Some devices, in the order of their names; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[DeviceRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRecord:
    """A workload that was asked for at least once, its number, and how many runs of it are stored."""

    id: int
    workload: Workload
    stored_run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPage:
    """Some workloads, the first asked for first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[WorkloadRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """A point of a sweep.

    Attributes:
        number: grows with every point that is asked for.
        id: depends on the point's content alone: the same point has it in every sweep.
        sweep_id: the sweep.
        device_id: where that runs.
        point: what is run.
        stored_run_count: runs that have arrived, whatever their verdict.
    """

    number: int
    id: str
    sweep_id: str
    device_id: str
    point: Point
    stored_run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPage:
    """Some points, the first asked for first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[PointRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRecord:
    """One figure of a run, with what it was measured on; ``unit`` is that of the figure."""

    run_id: str
    sweep_id: str
    device_id: str
    device_name: str
    point: Point
    repeat: int
    verdict: Verdict
    received_at: datetime
    metric: Metric
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePage:
    """Some figures, as their runs arrived; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[FigureRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceView:
    """A rail's trace in one part of the run: ``time_ns`` on the device's CLOCK_MONOTONIC, ``value`` as the rail says.

    That is W, J of a counter, s of a query's latency at the time of its issue, or °C.
    """

    rail: Rail
    time_ns: tuple[int, ...]
    value: tuple[float, ...]
    read_cost_ns: int
    part: Part


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
