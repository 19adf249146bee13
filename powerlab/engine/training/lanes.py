"""Slices of a batch that go forward and backward at the same time, each in a lane of threads of its own.

Threads of a lane wait for each other alone, not at every layer for those of another slice; each lane has activations of
its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.training.plans import StepPlan

_Made = TypeVar("_Made")


def lane_count(threads: int, slices: int, processes: int) -> int:
    """Return how many slices run at the same time: as many as share threads and slices evenly.

    Args:
        threads: of all lanes.
        slices: parts of the batch.
        processes: several have one lane each, whose gradients they add up while it goes on.
    """
    return math.gcd(threads, slices) if processes == 1 else 1


class Lanes:
    """The plans of the slices that run at the same time.

    Args:
        plan: of a slice, for the threads of one lane.
        count: how many lanes.
        pool: threads of all of them, where there is one lane alone.
        threads: of one lane.
        spin_us: how long a thread that waits spins before it sleeps, in microseconds.

    Attributes:
        plans: one for each lane.
    """

    def __init__(self, plan: StepPlan, count: int, pool: Any, threads: int, spin_us: int) -> None:
        pools = [pool] if count == 1 else [thread_pool(threads, spin_us) for _ in range(count)]
        self.plans = plan.built(pools)
        self._others = ThreadPoolExecutor(count - 1, thread_name_prefix="lane") if count > 1 else None

    def run(self, work: Callable[[int], _Made]) -> list[_Made]:
        """Do some work in every lane at the same time, and return what each made, in their order.

        Args:
            work: takes the number of a lane; all of them end before an error of one is raised.
        """
        if self._others is None:
            return [work(0)]
        begun = [self._others.submit(work, number) for number in range(1, len(self.plans))]
        try:
            first = work(0)
        finally:
            wait(begun)
        return [first, *(one.result() for one in begun)]
