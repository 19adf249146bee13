"""Makes an inference take as long as it would on the simulated board, which this machine's speed has no part in.

The time comes from the board's model (:func:`powerlab.boards.simulator.physics.inference_s`), so a worker on a
simulated board computes nothing: it announces its load and waits.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.physics import PowerModel, Work, inference_s
from powerlab.boards.simulator.state import Settings, read_settings
from powerlab.sysroot import Sysroot

NO_WORK = Work(0.0, 0.0)
"""An empty call of an engine."""
JITTER, RUN_JITTER = 0.005, 0.002
"""Relative standard deviations of an inference's time within a run, and of a run's mean between runs. Chosen."""
_MOST_JITTER = 4.0
_SETTINGS_AGE_NS = 100_000_000


class Pacer:
    """The pacer of a real machine: it changes nothing.

    Attributes:
        host_threads: threads the engine is loaded with on this machine.
        computes: whether the inferences must be computed; on a simulated board they are only waited for.
        processor_name: the simulated graphics processor that they are taken to run on; empty where there is none.
    """

    computes = True
    processor_name = ""

    def __init__(self, host_threads: int) -> None:
        self.host_threads = host_threads

    @contextmanager
    def inference(self, work: Work = NO_WORK) -> Iterator[None]:  # noqa: ARG002  a real board needs no telling
        """Run one inference inside this context; ``work`` is what it has to do."""
        yield

    def seconds(self, work: Work) -> float:  # noqa: ARG002  nobody knows
        """Return how long the board, as it is set now, takes for some work; 0 where that is to be measured."""
        return 0.0

    @contextmanager
    def at(self, activity: float) -> Iterator[None]:  # noqa: ARG002  a real board needs no telling
        """Let the inferences in this context make the cores switch so many times what a whole network makes them.

        They follow on each other without a pause: the load stays between them.
        """
        yield

    def parts(self, works: Sequence[tuple[Work, float]]) -> list[int]:  # noqa: ARG002  a real board needs no telling
        """Run the parts of one inference, each with its own switching; return how long each of them took, in ns."""
        return []

    def close(self) -> None:
        """Take the worker's load off the board."""


class SimulatedPacer(Pacer):
    """Waits as long as inferences take on a simulated board and publishes the load to its simulator."""

    computes = False

    def __init__(self, sysroot: Sysroot, threads: int, noise: random.Random | None = None) -> None:
        super().__init__(host_threads=min(threads, len(os.sched_getaffinity(0))))
        self._sysroot = sysroot
        self._threads = threads
        self._simulation = layout.simulation_of(layout.read_marker(sysroot)["board"])
        self._model = PowerModel.from_document(self._simulation)
        self._settings = self._read_settings()
        self._settings_ns = time.monotonic_ns()
        self._load = Load(sysroot)
        self._activity = 1.0
        self._stays = False
        self._noise = noise or random.Random()  # noqa: S311 - jitter, not a secret
        self._run_factor = self._noisy(RUN_JITTER)
        self._late_ns = 0

    def _read_settings(self) -> Settings:
        return read_settings(self._sysroot, self._simulation)

    def _noisy(self, deviation: float) -> float:
        return 1.0 + deviation * max(-_MOST_JITTER, min(self._noise.gauss(), _MOST_JITTER))

    def seconds(self, work: Work) -> float:
        """Return how long the board, as it is set now, takes for some work, without noise."""
        now_ns = time.monotonic_ns()
        if now_ns - self._settings_ns > _SETTINGS_AGE_NS:
            with suppress(OSError, ValueError):  # somebody is writing just now: the board keeps its settings
                self._settings = self._read_settings()
            self._settings_ns = now_ns
        return self._inference_s(self._settings, work)

    def _inference_s(self, settings: Settings, work: Work) -> float:
        return inference_s(self._model, settings.state(self._threads), work)

    def _publish(self, *, busy: bool) -> None:
        self._load.publish(self._threads if busy else 0, self._activity)

    @contextmanager
    def inference(self, work: Work = NO_WORK) -> Iterator[None]:
        """Run one inference inside this context; leaving it waits until the board would have finished.

        This machine may wake the worker too late. The next inference is shorter by that much, but by no more than half,
        so that the rate is the board's and a long interruption is not followed by a burst.
        """
        start_ns = time.monotonic_ns()
        lasts_ns = round(self.seconds(work) * self._run_factor * self._noisy(JITTER) * 1e9)
        due_ns = start_ns + lasts_ns - min(self._late_ns, lasts_ns // 2)
        self._publish(busy=True)
        try:
            yield
            time.sleep(max(0, due_ns - time.monotonic_ns()) / 1e9)
        finally:
            if not self._stays:
                self._publish(busy=False)
            self._late_ns = max(0, time.monotonic_ns() - due_ns)

    @contextmanager
    def at(self, activity: float) -> Iterator[None]:
        """Let the inferences in this context make the cores switch so many times what a whole network makes them.

        They follow on each other without a pause: the load stays between them.
        """
        self._activity, self._stays = activity, True
        try:
            yield
        finally:
            self._activity, self._stays = 1.0, False
            self._publish(busy=False)

    def parts(self, works: Sequence[tuple[Work, float]]) -> list[int]:
        """Run the parts of one inference, each with its own switching; return how long each of them took, in ns.

        The load stays between them.

        Args:
            works: what each of them has to do, and its switching as :meth:`at` takes it.
        """
        took_ns, stayed, self._stays = [], self._stays, True
        try:
            for work, self._activity in works:
                begin_ns = time.monotonic_ns()
                with self.inference(work):
                    pass
                took_ns.append(time.monotonic_ns() - begin_ns)
        finally:
            self._activity, self._stays = 1.0, stayed
            self._publish(busy=stayed)
        return took_ns

    def close(self) -> None:
        """Take the worker's load off the board."""
        self._load.close()
