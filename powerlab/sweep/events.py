"""Events of a running sweep, in order."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.order import Stage
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.domain.temperature import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStarted:
    """The plan was accepted.

    Attributes:
        sweep_id: the sweep.
        run_count: runs that follow; more where the plan goes on until something is known well enough, fewer where it is
            searched.
        expected_s: how long they take, about, where every device is steady and cool at once.
        longest_s: the same where every warm-up and every cool-down lasts as long as it may.
        advice: sentences where the plan asks for what its sensors cannot give, else empty.
    """

    sweep_id: str
    run_count: int
    expected_s: float
    longest_s: float = 0.0
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepExtended:
    """The planned runs are made, and some points are repeated again; ``detail`` is a sentence that says why.

    From now on there are ``run_count`` runs.
    """

    run_count: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEnded:
    """A search has measured what it wanted; ``detail`` is a sentence that says how much, and why no more.

    There are ``run_count`` runs in all.
    """

    run_count: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolingDown:
    """The next run waits until the device is cool enough for it; told at once, and every ten seconds until it is.

    Attributes:
        hottest: the hottest zone now.
        below_c: what every zone must be below, in °C.
        waited_s: how long the run has waited.
        longest_s: how long it may.
    """

    hottest: Reading
    below_c: float
    waited_s: float
    longest_s: float

    @property
    def detail(self) -> str:
        """Say it in a sentence without an end."""
        return (
            f"waits for the device to cool down: {self.hottest}, and a run begins below {self.below_c:g} °C "
            f"({self.waited_s:.0f} of at most {self.longest_s:.0f} s)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """Run number ``index`` of ``run_count`` (from 1) begins."""

    point: Point
    repeat: int
    index: int
    run_count: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFinished:
    """A run ended, well or not (see its verdict); its traces hold the timed part with a margin on both sides."""

    run: Run
    traces: tuple[Trace, ...]
    index: int
    run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFinished:
    """The sweep is over and the device's mode is restored; ``stopped`` where it was told to end before the end."""

    sweep_id: str
    valid_count: int
    flagged_count: int
    void_count: int
    failed_count: int
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootNeeded:
    """The last event of a sweep that goes on after a reboot, into the first of the stages that are left."""

    stages: tuple[Stage, ...]


SweepEvent = (
    SweepStarted | SweepExtended | SearchEnded | CoolingDown | RunStarted | RunFinished | RebootNeeded | SweepFinished
)
