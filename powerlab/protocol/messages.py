"""Messages between agents and servers.

A job's life::

    queued --lease--> running --finish--> done | failed
       ^                 |
       +--release, or a lease that ran out and was given out again--+

    queued | running --pause--> paused --resume--> queued, or running while its agent still holds it
    queued | running | paused --cancel--> cancelled
    done | failed --repeat--> queued, with more repeats in its plan

Every lease carries a fencing token that is larger than the one before; a write with an older token is refused, so an
agent that was away for too long cannot disturb its successor. What it had uploaded before stays.

A holder whose device waits, because it is too hot for the next run, says so with its heartbeats; ``detail`` of the
job, which keeps running, tells it.

A holder that reboots its device for a power mode says so first, and is waited for until it must be back; ``detail`` of
the job, which keeps running, names the mode.

Pausing and cancelling leave the fencing token as it is: who holds the job learns of it from the answer to its
heartbeat, ends the run in progress, hands in what it has measured under the same token, and lets go. So late runs of a
paused job are taken until it is given out again, and those of a cancelled one always, each once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from powerlab.domain.device import Capabilities, Device, SelfCheck
from powerlab.domain.power import Part, Rail
from powerlab.domain.run import Run
from powerlab.domain.selector import Selector
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol import PROTOCOL_VERSION
from powerlab.protocol.records import SweepState


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentCodeRequest:
    """Asks for a code that enrols one device, once, within ``valid_s`` seconds.

    With ``device_id`` the code replaces the token of a device that was enrolled before.
    """

    valid_s: int = 3600
    device_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentCode:
    """The code, shown this once: the server keeps a hash."""

    code: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolRequest:
    """An agent introduces its device."""

    code: str
    device: Device
    capabilities: Capabilities
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolReply:
    """The device's identifier and the agent's bearer token, shown this once."""

    device_id: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """An agent says, when it starts, what its device is and can do now, and what it found when it checked itself."""

    device: Device
    capabilities: Capabilities
    protocol: int = PROTOCOL_VERSION
    checks: tuple[SelfCheck, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTime:
    """The server's clock, in ns since 1970-01-01 UTC: when it got the question and when it answered (RFC 5905)."""

    received_ns: int
    sent_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What an agent has on its disk that its server has not taken.

    Attributes:
        runs: runs that wait to be uploaded.
        refused_runs: runs that the server refused, which the agent keeps.
        chunks: chunks of the traces of all these runs.
        size_bytes: what runs and chunks take of the spool's file, in whole pages; 0 where there are none.
        oldest_age_s: how long the oldest run has waited; None where none does, or where the agent does not know.
        shed_runs: runs whose traces the agent has ever thrown away for want of room.
    """

    runs: int
    refused_runs: int
    chunks: int
    size_bytes: int
    oldest_age_s: float | None
    shed_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Asks for a job, waiting for one up to ``wait_s`` seconds; ``backlog`` is None where the agent does not say."""

    wait_s: float = 0.0
    backlog: Backlog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneRun:
    """A repeat that the server already has, with the figures that a search learns from; a grid has no need of them."""

    point_id: str
    repeat: int
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """What a further device of a cluster does for a job: follow the first one, who waits for it.

    Attributes:
        address: where, ``HOST:PORT``.
        secret: what it must know there.
    """

    address: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """The holder of a cluster's job says where it waits for the other devices, and what they must know there."""

    fencing_token: int
    address: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A job, to be held by a heartbeat every third of ``lease_s``; ``done`` need not be measured again.

    ``nodes`` names the other devices of a cluster, to whom its first device says where it waits for them. Those get the
    job with their ``part`` in it, and write nothing.
    """

    job_id: str
    sweep_id: str
    plan: SweepPlan
    fencing_token: int
    lease_s: float
    done: tuple[DoneRun, ...]
    nodes: tuple[str, ...] = ()
    part: NodePart | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReply:
    """The answer to a lease request: a job, or None where there is nothing to do."""

    lease: Lease | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Proves that the sender still holds the job, which it gives back."""

    fencing_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat of a job's holder.

    Attributes:
        fencing_token: proves that it still holds the job.
        waits: what its device waits for before the next run, in words; empty where it waits for nothing.
        backlog: what it has not uploaded yet; None where it does not say.
    """

    fencing_token: int
    waits: str = ""
    backlog: Backlog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootNotice:
    """The holder reboots its device for a power mode of the sweep, and says nothing for up to ``down_s`` seconds."""

    fencing_token: int
    mode: str
    down_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStanding:
    """Where a job stands after a heartbeat or a release; a holder goes on where it is ``running``, and ends else.

    A holder whose device is booked for others now hears ``queued``.
    """

    state: SweepState


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The job is over; ``detail`` says why it failed."""

    fencing_token: int
    state: Literal["done", "failed"]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUpload:
    """A finished run, sent under the run's own identifier; sending it again changes nothing."""

    fencing_token: int
    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChunk:
    """Consecutive samples of one rail, compressed; see :mod:`powerlab.protocol.chunks`.

    ``position`` counts the chunks of a rail and part from 0; ``sha256`` is that of the payload.
    """

    rail: Rail
    position: int
    read_cost_ns: int
    t_first_ns: int
    t_last_ns: int
    sample_count: int
    value_min: float
    value_max: float
    value_sum: float
    codec: str
    sha256: str
    payload_base64: str
    part: Part = Part.RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkUpload:
    """A chunk of a run that was uploaded before."""

    fencing_token: int
    chunk: TraceChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunksUpload:
    """Several chunks of one run that was uploaded before: all of them are stored, or none."""

    fencing_token: int
    chunks: tuple[TraceChunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of an upload: ``created``, or ``unchanged`` where the same bytes were there already."""

    outcome: Literal["created", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """Asks for a sweep on a device, or on the first that is free of several: exactly one of both is given.

    With the devices ``with_ids``, too, all of them train together: the plan's ``nodes`` follow from them.

    Of the sweeps that wait for a device, the one with the highest priority comes first.
    """

    plan: SweepPlan
    device_id: str | None = None
    any_of: Selector | None = None
    priority: int = 0
    with_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRequest:
    """Asks for ``add`` further repeats of every point of a sweep."""

    add: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest:
    """Asks for a sweep once more.

    Attributes:
        device_id: another device; None takes the same one.
        changes: fields of the plan that are to be others, by name.
        priority: another priority; None takes the same one.
    """

    device_id: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as RFC 9457 writes it; ``detail`` is the sentence for people, ``type`` the name for programs."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"
    instance: str | None = None
