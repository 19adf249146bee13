"""A sweep: the plan a user writes, and the points it expands to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place in a sweep: threads x power mode x workload."""

    workload: Workload
    threads: int
    mode: str

    @property
    def id(self) -> str:
        """16 hex digits that depend on the point's content alone, so that the same point has the same id anywhere."""
        w = self.workload
        parts = (w.engine, w.model, w.precision, w.scenario, w.batch_size, self.threads, self.mode)
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a user asks for: every combination is a point, and every point is run ``repeats`` times.

    Attributes:
        models: zoo names or paths of ONNX files.
        threads: thread counts.
        batch_sizes: images per inference.
        modes: names of power modes; ``current`` leaves the device as it is.
        repeats: runs of each point, at least 3, in an order shuffled by ``seed``.
        seed: makes the order of the runs repeatable.
        duration_s: length of the timed part of a run, at least; a run also holds at least ``min_inferences``.
        min_inferences: see ``duration_s``.
        warm_up_s: untimed inferences before the timed part.
        idle_s: length of the idle baseline in each power mode.
        sample_period_s: time between two power samples.
        engine: the backend that runs the models.
    """

    models: tuple[str, ...]
    threads: tuple[int, ...]
    batch_sizes: tuple[int, ...] = (1,)
    modes: tuple[str, ...] = (CURRENT_MODE_NAME,)
    repeats: int = 3
    seed: int = 0
    duration_s: float = 5.0
    min_inferences: int = 10
    warm_up_s: float = 1.0
    idle_s: float = 2.0
    sample_period_s: float = 0.01
    engine: str = "builtin"

    def points(self) -> tuple[Point, ...]:
        """Return every combination once, in reading order."""
        return tuple(
            Point(workload=Workload(model=model, batch_size=batch, engine=self.engine), threads=threads, mode=mode)
            for model in self.models
            for mode in self.modes
            for batch in self.batch_sizes
            for threads in self.threads
        )
