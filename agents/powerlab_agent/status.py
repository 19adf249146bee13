"""The agent's current activity, for status displays: written by the working threads, each attribute atomically."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.sweep import Point
from powerlab.sweep.events import (
    CoolingDown,
    RunFinished,
    RunStarted,
    SearchEnded,
    SweepEvent,
    SweepExtended,
    SweepStarted,
)


class AgentState(StrEnum):
    """What an agent does; ``offline`` where it would speak to its server and cannot."""

    IDLE = "idle"
    MEASURING = "measuring"
    UPLOADING = "uploading"
    OFFLINE = "offline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a sweep is: runs that are over, of those that this agent has to make."""

    sweep_id: str
    finished: int
    planned: int


@dataclass(slots=True)
class Status:
    """The state of one agent.

    Attributes:
        doing: what it does, whether its server answers or not.
        progress: of the job in hand; None without one.
        point: what is being measured; None between runs.
        waits: what the next run waits for, in words; empty where it waits for nothing.
    """

    doing: AgentState = AgentState.IDLE
    progress: Progress | None = None
    point: Point | None = None
    waits: str = ""

    def state(self, *, reachable: bool) -> AgentState:
        """Return the state; measuring needs no server."""
        return self.doing if reachable or self.doing is AgentState.MEASURING else AgentState.OFFLINE

    @contextmanager
    def during(self, doing: AgentState) -> Iterator[None]:
        """Be in a state for a while, and then in the one before again."""
        before, self.doing = self.doing, doing
        try:
            yield
        finally:
            self.doing = before

    @contextmanager
    def job(self) -> Iterator[None]:
        """Carry out a job; afterwards there is none."""
        try:
            with self.during(AgentState.MEASURING):
                yield
        finally:
            self.progress = self.point = None
            self.waits = ""

    def note(self, event: SweepEvent) -> None:
        """Keep up with a sweep."""
        self.waits = event.detail if isinstance(event, CoolingDown) else ""
        if isinstance(event, SweepStarted):
            self.progress = Progress(sweep_id=event.sweep_id, finished=0, planned=event.run_count)
        elif isinstance(event, RunStarted):
            self.point = event.point
        elif self.progress is not None and isinstance(event, SweepExtended | SearchEnded):
            self.progress = Progress(
                sweep_id=self.progress.sweep_id, finished=self.progress.finished, planned=event.run_count
            )
        elif self.progress is not None and isinstance(event, RunFinished):
            self.point = None
            self.progress = Progress(sweep_id=self.progress.sweep_id, finished=event.index, planned=event.run_count)
