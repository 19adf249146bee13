"""What happens while a sweep runs, in the order it happens."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStarted:
    """The plan was accepted; ``run_count`` runs follow, in about ``expected_s`` seconds.

    ``advice`` is one sentence where the plan's times are too short for its sensors, else empty.
    """

    sweep_id: str
    run_count: int
    expected_s: float
    advice: str = ""


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
    """The sweep is over and the device's mode is restored."""

    sweep_id: str
    valid_count: int
    flagged_count: int
    void_count: int
    failed_count: int


SweepEvent = SweepStarted | RunStarted | RunFinished | SweepFinished
