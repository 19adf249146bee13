"""How much of the machine other processes used while a run went on."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    busy_s: float
    own_s: float


class BackgroundLoad:
    """Counts the cores that others kept busy between its making and :meth:`cores`.

    "Others" is all CPU time of the machine without that of this process and of the worker.
    """

    def __init__(self, worker_pid: int) -> None:
        self._worker = psutil.Process(worker_pid)
        self._own = psutil.Process()
        self._start = self._read()

    def cores(self) -> float:
        """Return how many cores' worth of time others used, since the start."""
        now, start = self._read(), self._start
        elapsed_s = max(now.at_s - start.at_s, 1e-9)
        return max(0.0, (now.busy_s - start.busy_s) - (now.own_s - start.own_s)) / elapsed_s

    def _read(self) -> _Reading:
        times = psutil.cpu_times()
        busy_s = times.user + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
        own = [process.cpu_times() for process in (self._own, self._worker)]
        return _Reading(time.monotonic(), busy_s, sum(one.user + one.system for one in own))
