"""Sample rails that only Python can read, in one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from powerlab.domain.power import Rail
from powerlab.power.base import PolledChannel, Stamped


@dataclass(slots=True)
class PolledSamples:
    """One rail's samples: equally long lists of stamps, values (W or J) and what each read took."""

    time_ns: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    cost_ns: list[int] = field(default_factory=list)
    failed_reads: int = 0


READS_A_LOOK = 5
"""How often a sensor that looks only part of the time is read in the time in which it looks once: what it saw must be
known to be of this or that part of a query (:mod:`powerlab.measure.energy.in_step`)."""


def read_every_s(rail: Rail, period_s: float) -> float:
    """Return how often a rail is read: no more often than tells more, and a part-time sensor never less often."""
    return rail.update_period_s / READS_A_LOOK if rail.seen_share < 1 else max(period_s, rail.update_period_s)


class Poller:
    """Reads every channel once a period, but, unless told so, hardly more often than its value is said to change."""

    def __init__(self, channels: Sequence[PolledChannel], period_s: float, *, every_period: bool = False) -> None:
        self._channels = tuple(channels)
        rails = [channel.rail for channel in self._channels]
        self._periods_ns = [round((period_s if every_period else read_every_s(one, period_s)) * 1e9) for one in rails]
        self._stopping = threading.Event()
        self._opened = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.samples = [PolledSamples() for _ in self._channels]
        self.cpu_ns = 0
        """Processor time of the last recording's thread, known when it has ended."""

    def start(self) -> None:
        """Begin to sample; does nothing without channels. Returns once the sessions are open, or do not open."""
        self.samples = [PolledSamples() for _ in self._channels]
        self.cpu_ns = 0
        if self._channels:
            self._stopping.clear()
            self._opened.clear()
            self._thread = threading.Thread(target=self._run, name="powerlab-poller", daemon=True)
            self._thread.start()
            self._opened.wait()

    def stop(self) -> None:
        """Return when the thread is gone.

        Raises:
            BaseException: what a read raised beside OSError: a fault in the source, which ended sampling.
        """
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            with ExitStack() as stack:
                for session in dict.fromkeys(channel.session for channel in self._channels if channel.session):
                    try:
                        stack.enter_context(session())
                    except OSError:
                        continue  # its channels' reads fail from now on, and are counted
                self._opened.set()
                self._sample_until_stopped()
        except BaseException as error:
            self._error = error
        finally:
            self.cpu_ns = time.thread_time_ns()
            self._opened.set()

    def _sample_until_stopped(self) -> None:
        due_ns = [time.monotonic_ns()] * len(self._channels)
        while not self._stopping.wait(max(0, min(due_ns) - time.monotonic_ns()) * 1e-9):
            now_ns = time.monotonic_ns()
            for index, channel in enumerate(self._channels):
                if due_ns[index] <= now_ns:
                    _sample(channel, self.samples[index])
                    # Periods that were missed are skipped, not caught up with.
                    late = max(0, time.monotonic_ns() - due_ns[index]) // self._periods_ns[index]
                    due_ns[index] += (late + 1) * self._periods_ns[index]


def _sample(channel: PolledChannel, samples: PolledSamples) -> None:
    before_ns = time.monotonic_ns()
    try:
        value = channel.read()
    except OSError:
        samples.failed_reads += 1
        return
    after_ns = time.monotonic_ns()
    time_ns = before_ns + (after_ns - before_ns) // 2
    if isinstance(value, (Stamped, tuple)):
        for stamped in (value,) if isinstance(value, Stamped) else value:
            if not samples.time_ns or stamped.time_ns > samples.time_ns[-1]:  # else nothing new has come since
                samples.time_ns.append(stamped.time_ns)
                samples.value.append(stamped.value)
                samples.cost_ns.append(after_ns - before_ns)
        return
    if samples.time_ns and time_ns <= samples.time_ns[-1]:
        samples.failed_reads += 1
        return
    samples.time_ns.append(time_ns)
    samples.value.append(value)
    samples.cost_ns.append(after_ns - before_ns)
