"""Events of the server as a numbered list for readers to follow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EventKind(StrEnum):
    """What happened.

    A sweep is *queued* again when its agent gives it back, or when it goes on after a pause. It is *waiting* when its
    device cools down or reboots before the next run; with an empty detail it goes on. A device is *seen* when its agent
    starts.
    """

    SWEEP_CREATED = "sweep.created"
    SWEEP_STARTED = "sweep.started"
    SWEEP_WAITING = "sweep.waiting"
    SWEEP_QUEUED = "sweep.queued"
    SWEEP_PAUSED = "sweep.paused"
    SWEEP_CANCELLED = "sweep.cancelled"
    SWEEP_FINISHED = "sweep.finished"
    SWEEP_FAILED = "sweep.failed"
    RUN_STORED = "run.stored"
    DEVICE_ENROLLED = "device.enrolled"
    DEVICE_SEEN = "device.seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened.

    Attributes:
        id: grows in the order in which events became visible, with gaps; a reader that has seen one has seen, or will
            never see, every one with a smaller id.
        at: when, UTC.
        kind: what.
        device_id: on which device.
        sweep_id: of which sweep; None where it is about a device alone.
        run_id: which run; None where it is about no run.
        detail: more in words: why a sweep failed, what its device waits for, a run's verdict.
    """

    id: int
    at: datetime
    kind: EventKind
    device_id: str
    sweep_id: str | None = None
    run_id: str | None = None
    detail: str = ""
