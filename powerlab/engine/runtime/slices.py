"""A batch cut into slices that run at the same time, each on threads of its own.

On GPUs a batch is divided among several concurrent executors because one kernel does not fill the device. On a
processor it is the barriers and the caches: threads of a slice wait for each other only, and share one slice's images.
All slices have the same weights, packed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.program.program import Floats, Program
from powerlab.engine.runtime.plan import build_plans, thread_pool
from powerlab.engine.target.tiers import Tier, native_engine


def check_slices(slices: int, threads: int) -> None:
    """Raise PowerlabError where ``slices`` is no number of slices, or ``threads`` cannot be shared by them evenly."""
    if isinstance(slices, bool) or not isinstance(slices, int) or slices < 1:
        raise PowerlabError(f"slices must be an integer from 1 on, not {slices!r}.")
    if threads % slices:
        raise PowerlabError(
            f"{threads} thread(s) cannot be shared evenly by {slices} slices; give a multiple of {slices}."
        )


def slice_shapes(graph: Graph, slices: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a slice's inputs: the first axis of each is the batch.

    Raises:
        PowerlabError: a batch cannot be cut evenly.
    """
    for info in graph.inputs:
        if not info.shape or info.shape[0] % slices:
            raise PowerlabError(
                f"the input {quoted(info.name)} of shape {list(info.shape)} cannot be cut evenly into {slices} slices; "
                f"give a batch that is a multiple of {slices}."
            )
    return {info.name: (info.shape[0] // slices, *info.shape[1:]) for info in graph.inputs}


def doubled_shapes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs for a batch of twice as many images."""
    return {info.name: (2 * info.shape[0], *info.shape[1:]) for info in graph.inputs}


class SlicedPlan:
    """The plans of a batch's slices, which take whole inputs and outputs as a native ``Plan`` takes its own.

    Args:
        program: of one slice.
        tier: the kernels to use.
        threads: of all slices together.
        spin_us: how long a waiting thread spins before it sleeps, in microseconds.
        slices: how many there are.
        inputs: how many of the arrays that a run brings along are the batch's; slices share the others.
    """

    def __init__(self, program: Program, tier: Tier, threads: int, spin_us: int, *, slices: int, inputs: int) -> None:
        pools = [thread_pool(threads // slices, spin_us) for _ in range(slices)]
        self._plans = build_plans(program, tier, pools)
        self._group = native_engine().PlanGroup(slices=slices, spin_ns=spin_us * 1000)
        self._inputs = inputs

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Run all slices once, and return when the last has ended."""
        self._group.run(*self._cut(inputs, outputs))

    def run_timed(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> list[int]:
        """Run all slices once, and return the nanoseconds that each step of the first one took."""
        return list(self._group.run_timed(*self._cut(inputs, outputs)))

    def repeat(self, inputs: Sequence[Floats], outputs: Sequence[Floats], first: int, last: int, times: int) -> int:
        """Run some steps of all slices many times, and return the nanoseconds of the slice that took longest."""
        return int(self._group.repeat(*self._cut(inputs, outputs), first, last, times))

    def poison(self) -> None:
        """Overwrite the intermediate memory of all slices with not-a-number."""
        for plan in self._plans:
            plan.poison()

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every step of a slice."""
        return list(self._plans[0].steps())

    def _cut(
        self, inputs: Sequence[Floats], outputs: Sequence[Floats]
    ) -> tuple[list[Any], list[list[Floats]], list[list[Floats]]]:
        """Return plans, inputs and outputs of each slice; parts of contiguous arrays are views of them."""
        count = len(self._plans)
        of_batch = [array.reshape(count, -1) for array in inputs[: self._inputs]]
        written = [array.reshape(count, -1) for array in outputs]
        shared = inputs[self._inputs :]
        return (
            self._plans,
            [[*(array[number] for array in of_batch), *shared] for number in range(count)],
            [[array[number] for array in written] for number in range(count)],
        )
