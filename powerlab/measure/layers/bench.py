"""The worker's side: a model in the built-in engine whose steps are repeated one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from powerlab.boards.simulator import NO_WORK, Pacer, Work, pacer
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.target.ceilings import measure_ceilings
from powerlab.measure.layers.activity import activities
from powerlab.measure.layers.messages import (
    WHOLE,
    FindCeilings,
    LayerReply,
    LayerRequest,
    LoadLayers,
    Repeated,
    RepeatStep,
    Roofs,
    Steps,
)
from powerlab.measure.layers.subjects import Subject, load_subject
from powerlab.measure.worker.simulated_work import graph_work, step_works, training_work
from powerlab.sysroot import Sysroot

CHUNK_NS = 10_000_000
"""Repetitions are timed together for about this long: reading the clock and calling the engine cost nothing then."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Repetitions that are timed together.

    Attributes:
        count: how many.
        work: what all of them have to do, for a simulated board.
        run: runs them; of the whole it returns what each step took on the mean, in ns.
    """

    count: int
    work: Work
    run: Callable[[], NDArray[np.int64] | None]


class Bench:
    """Steps on their way through the engine: loads a model once and repeats what it is asked to."""

    def __init__(self) -> None:
        self._subject: Subject | None = None
        self._pace: Pacer | None = None
        self._activities: tuple[float, ...] = ()
        self._works: tuple[Work, ...] = ()

    def close(self) -> None:
        """Take the load off a simulated board."""
        if self._pace is not None:
            self._pace.close()

    def answer(self, request: LayerRequest) -> LayerReply:
        """Do what is asked.

        Raises:
            PowerlabError: the model cannot be run, for a reason the user can fix.
            RuntimeError: no model is loaded.
        """
        if isinstance(request, LoadLayers):
            return self._load(request)
        if self._subject is None or self._pace is None:
            raise RuntimeError("no model is loaded")
        if isinstance(request, FindCeilings):
            found = measure_ceilings(self._subject.threads)
            return Roofs(peak_gflops=found.peak_gflops, memory_gb_per_s=found.memory_gb_per_s)
        return self._repeat(request, self._subject, self._pace)

    def _load(self, request: LoadLayers) -> Steps:
        graph = load_graph(request.model, batch_size=request.batch_size)
        on_gpu = request.processor is Processor.GPU
        self._pace = pacer(Sysroot(Path(request.sysroot)), request.threads, on_gpu)
        self._subject = subject = load_subject(graph, request, self._pace.host_threads)
        steps, works = subject.steps(), subject.work
        self._activities = (1.0,) * len(steps)
        self._works = (NO_WORK,) * len(steps)
        if not self._pace.computes:
            whole = training_work(graph, request.optimizer) if request.optimizer else graph_work(graph)
            self._works = step_works(whole, works)
            self._activities = activities(works, self._modelled_ns(self._pace))
        return Steps(
            tier=subject.tier,
            kernels=tuple(kernel for kernel, _ in steps),
            labels=tuple(label for _, label in steps),
            operators=tuple(work.operator for work in works),
            nodes=subject.nodes,
            shapes=tuple(work.shape for work in works),
            flops=tuple(work.flops for work in works),
            bytes_moved=tuple(work.bytes_moved for work in works),
        )

    def _repeat(self, request: RepeatStep, subject: Subject, pace: Pacer) -> Repeated:
        """Repeat a step with the load already there before the window and still there after it."""
        chunk = self._chunk(request.step, subject, pace)
        activity = 1.0 if request.step == WHOLE else self._activities[request.step]
        with pace.at(activity):
            _run_until(time.monotonic_ns() + round(request.margin_s * 1e9), chunk, pace)
            found = _run_until(time.monotonic_ns() + round(request.duration_s * 1e9), chunk, pace, least=1)
            _run_until(time.monotonic_ns() + round(request.margin_s * 1e9), chunk, pace)
        starts, ends, steps = found
        return Repeated(
            start_ns=_little_endian(starts),
            end_ns=_little_endian(ends),
            count=_little_endian([chunk.count] * len(starts)),
            step_ns=b"".join(_little_endian(row) for row in steps),
        )

    def _chunk(self, step: int, subject: Subject, pace: Pacer) -> Chunk:
        """Return what runs often enough. What the step reads is there afterwards."""
        if not pace.computes:
            return self._simulated(step, pace)
        if step == WHOLE:
            return self._whole(subject)
        subject.prepare(step)
        count = 1
        while (took_ns := subject.repeat(step, count)) < CHUNK_NS // 8:
            count *= 2
        count = max(1, round(count * CHUNK_NS / took_ns))

        def run() -> None:
            subject.repeat(step, count)

        return Chunk(count, NO_WORK, run)

    @staticmethod
    def _whole(subject: Subject) -> Chunk:
        """Return what runs all of them and says what each took on the mean."""
        begin_ns = time.monotonic_ns()
        subject.profile()
        count = max(1, round(CHUNK_NS / (time.monotonic_ns() - begin_ns)))

        def run() -> NDArray[np.int64]:
            steps = np.array([subject.profile() for _ in range(count)], dtype=np.int64)
            return np.asarray(steps.mean(axis=0).round().astype(np.int64))

        return Chunk(count, NO_WORK, run)

    def _simulated(self, step: int, pace: Pacer) -> Chunk:
        """Return what the pacer waits for in place of computing it, and the steps' times by the board's model."""
        work = sum(self._works, start=Work(0.0, 0.0, 0.0)) if step == WHOLE else self._works[step]
        count = max(1, round(CHUNK_NS / (pace.seconds(work) * 1e9)))
        return Chunk(count, work * count, lambda: self._modelled_ns(pace) if step == WHOLE else None)

    def _modelled_ns(self, pace: Pacer) -> NDArray[np.int64]:
        """Return how long each step takes on the simulated board, as it is set now."""
        return np.array([max(1, round(pace.seconds(work) * 1e9)) for work in self._works], dtype=np.int64)


def _run_until(
    deadline_ns: int, chunk: Chunk, pace: Pacer, least: int = 0
) -> tuple[list[int], list[int], list[NDArray[np.int64]]]:
    """Run chunks until the time is over; return their starts and ends in ns, and what steps took in each."""
    clock = time.monotonic_ns
    starts: list[int] = []
    ends: list[int] = []
    steps: list[NDArray[np.int64]] = []
    now = clock()
    while now < deadline_ns or len(ends) < least:
        starts.append(clock())
        with pace.inference(chunk.work):
            durations = chunk.run()
        now = clock()
        ends.append(now)
        if durations is not None:
            steps.append(durations)
    return starts, ends, steps


def _little_endian(values: list[int] | NDArray[np.int64]) -> bytes:
    return np.asarray(values, dtype="<i8").tobytes()
