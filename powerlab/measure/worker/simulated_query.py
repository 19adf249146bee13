"""What a simulated board waits for in place of an inference, or of a step of training with its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from powerlab.boards.simulator import Pacer, Work
from powerlab.domain.workload import Workload
from powerlab.engine.program.program import Floats
from powerlab.engine.training.parts import PARTS_TOGETHER
from powerlab.measure.layers.activity import activities
from powerlab.measure.worker.simulated_work import query_works, weight_count


class SimulatedQuery:
    """The work of one query on a simulated board.

    What computes little for what it moves switches less, as layers do (:mod:`powerlab.measure.layers.activity`): so a
    step's update of the weights draws less than its passes, and the whole draws what it always does.

    Args:
        workload: what is run.
        pace: the board's pacer, in the power mode that the query is run in.
    """

    def __init__(self, workload: Workload, pace: Pacer) -> None:
        self._pace, parts = pace, query_works(workload)
        self._names, works = tuple(filter(None, parts)), tuple(parts.values())
        self._whole = works[0]
        self._gradients = np.zeros(weight_count(workload) if workload.nodes > 1 else 0, np.float32)
        self._parts: Sequence[tuple[Work, float]] = ()
        if self._names:
            each_ns = np.array([max(1.0, pace.seconds(work) * 1e9) for work in works])
            self._parts = tuple(zip(works, activities(works, each_ns), strict=True))

    def wait(self, add_up: Callable[[Sequence[Floats]], None] | None = None) -> Mapping[str, int]:
        """Wait as long as it takes there; return how long each part did, in ns, by name, where it has parts.

        Args:
            add_up: adds up gradients over devices that train together: as many numbers as there are, but none of them.
        """
        if self._parts:
            if add_up is None:
                return dict(zip(self._names, self._pace.parts(self._parts), strict=True))
            passes_ns, begin_ns = self._pace.parts(self._parts[:-1]), time.monotonic_ns()
            add_up([self._gradients])
            reduce_ns = time.monotonic_ns() - begin_ns
            took_ns = (*passes_ns, reduce_ns, *self._pace.parts(self._parts[-1:]))
            return dict(zip(PARTS_TOGETHER, took_ns, strict=True))
        with self._pace.inference(self._whole):
            return {}
