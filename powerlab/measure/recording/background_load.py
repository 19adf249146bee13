"""Processor time that other processes used during a run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from powerlab.measure.evidence import BACKGROUND_CORES


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    busy_s: float
    own_s: float


BACKGROUND_SHARE = 0.10


def background_limit_cores() -> float:
    """Return how many cores others may keep busy: 10 % of the machine, and on a large one no more than half a core."""
    return min(BACKGROUND_SHARE * (os.cpu_count() or 1), BACKGROUND_CORES)


class BackgroundLoad:
    """Counts the cores that others kept busy between its making and :meth:`cores`.

    "Others" is all CPU time of the machine without that of this process, with its sampler thread, and of the workers.
    """

    def __init__(self, *worker_pids: int) -> None:
        """Begin to count; without workers only this process is no background."""
        self._own = [psutil.Process(), *map(psutil.Process, worker_pids)]
        self._start = self._read()

    def cores(self) -> float:
        """Return how many cores' worth of time others used, since the start."""
        now, start = self._read(), self._start
        elapsed_s = max(now.at_s - start.at_s, 1e-9)
        return max(0.0, (now.busy_s - start.busy_s) - (now.own_s - start.own_s)) / elapsed_s

    def _read(self) -> _Reading:
        times = psutil.cpu_times()
        busy_s = sum(getattr(times, field, 0.0) for field in ("user", "nice", "system", "irq", "softirq"))
        own = [process.cpu_times() for process in self._own]
        return _Reading(time.monotonic(), busy_s, sum(one.user + one.system for one in own))
