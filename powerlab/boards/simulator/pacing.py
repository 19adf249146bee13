"""Makes an inference on this machine take as long as it would on the simulated board."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import core_numbers
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.physics import PowerModel, slowdown, speedup
from powerlab.boards.simulator.state import Settings, read_settings
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

_SETTINGS_AGE_NS = 100_000_000


@dataclass(slots=True)
class Pacer:
    """The pacer of a real machine: it changes nothing.

    Attributes:
        host_threads: threads the engine really uses.
    """

    host_threads: int

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Run one inference inside this context."""
        yield

    @contextmanager
    def at(self, activity: float) -> Iterator[None]:  # noqa: ARG002  a real board needs no telling
        """Let the inferences in this context make the cores switch so many times what a whole network makes them.

        They follow on each other without a pause: the load stays between them.
        """
        yield

    def close(self) -> None:
        """Take the worker's load off the board."""


def slowest_factor(model: PowerModel, core_count: int, host_cores: int) -> float:
    """Return the constant that keeps every simulated inference at least as long as the real one.

    A simulated inference lasts ``host_duration * host_threads * C * slowdown / speedup(threads)``, the slowdown is at
    least 1, and ``host_threads = min(threads, host_cores)``: so C is the largest ``speedup(t) / min(t, host_cores)``.
    """
    return max(speedup(model, t, core_count) / min(t, host_cores) for t in range(1, core_count + 1))


class SimulatedPacer(Pacer):
    """Stretches inferences to a simulated board's speed and publishes the load to its simulator."""

    def __init__(self, sysroot: Sysroot, threads: int) -> None:
        host_cores = len(os.sched_getaffinity(0))
        super().__init__(host_threads=min(threads, host_cores))
        self._sysroot = sysroot
        self._threads = threads
        self._simulation = layout.simulation_of(layout.read_marker(sysroot)["board"])
        self._model = PowerModel.from_document(self._simulation)
        self._constant = slowest_factor(self._model, len(core_numbers(self._simulation)), host_cores)
        self._settings = self._read_settings()
        self._settings_ns = time.monotonic_ns()
        self._load = Load(sysroot)
        self._activity = 1.0
        self._stays = False

    def _read_settings(self) -> Settings:
        return read_settings(self._sysroot, self._simulation)

    def stretch(self) -> float:
        """Return how many times longer an inference takes on the board, as it is set now, than here."""
        now_ns = time.monotonic_ns()
        if now_ns - self._settings_ns > _SETTINGS_AGE_NS:
            with suppress(OSError, ValueError):  # somebody is writing just now: the board keeps its settings
                self._settings = self._read_settings()
            self._settings_ns = now_ns
        state = self._settings.state(self._threads)
        faster_cores = speedup(self._model, self._threads, len(state.cores))
        return self.host_threads * self._constant * slowdown(self._model, state) / faster_cores

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Run one inference inside this context; leaving it waits until the board would have finished.

        The work is counted in processor time, so that what else runs on this machine does not slow the board.
        """
        stretch = self.stretch()
        self._load.publish(self._threads, self._activity)
        start_ns, start_cpu_ns = time.monotonic_ns(), time.process_time_ns()
        try:
            yield
            work_ns = (time.process_time_ns() - start_cpu_ns) / self.host_threads
            elapsed_ns = time.monotonic_ns() - start_ns
            time.sleep(max(0.0, work_ns * stretch - elapsed_ns) / 1e9)
        finally:
            if not self._stays:
                self._load.publish(0)

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
            self._load.publish(0)

    def close(self) -> None:
        """Take the worker's load off the board."""
        self._load.close()


def pacer(sysroot: Sysroot, threads: int) -> Pacer:
    """Return what a worker wraps its inferences in, for ``threads`` threads on the (simulated) board.

    Raises:
        PowerlabError: the simulated board's tree is damaged.
    """
    if not sysroot.simulated:
        return Pacer(threads)
    try:
        return SimulatedPacer(sysroot, threads)
    except (OSError, ValueError) as error:
        raise PowerlabError(
            f"the simulated board in {sysroot.base} is damaged ({error}); write a new one with"
            " `powerlab boards simulate NAME DIR`."
        ) from None
