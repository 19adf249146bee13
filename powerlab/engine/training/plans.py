"""A graph of a step, planned: arrays go in and come out by the graph's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.prepared.prepared import memory_errors, prepare
from powerlab.engine.program.outputs import written_in_place
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.arena import lay_out
from powerlab.engine.runtime.plan import build_plan
from powerlab.engine.target.tiers import Tier

FLOAT_BYTES = 4


class StepPlan:
    """A graph, lowered; :meth:`build` takes the memory that it needs.

    Args:
        graph: not optimised.
        tier: the kernels to use.
        threads: threads that compute.
        in_place: whether outputs are written where they lie, which must be aligned memory then.

    Attributes:
        arena_bytes: memory for what is neither input nor output.
        labels: of its steps, in the order they run.
        work: what each of them has to do.

    Raises:
        PowerlabError: the engine cannot compute what the graph holds.
    """

    def __init__(self, graph: Graph, tier: Tier, threads: int, *, in_place: bool = False) -> None:
        lowered = optimise(graph, chained=False)
        self._name, self._tier = graph.name, tier
        self._inputs, self._outputs = lowered.inputs, lowered.outputs
        prepared = prepare(lowered, tier, threads)
        program, self.work = prepared.program, prepared.work
        self._program = written_in_place(program) if in_place else program
        self.labels = tuple(step.label for step in self._program.steps)
        self.arena_bytes = FLOAT_BYTES * lay_out(self._program.steps).floats
        self._plan: Any = None

    def build(self, pool: Any) -> None:
        """Take memory, on the threads of a pool.

        Raises:
            PowerlabError: there is not enough.
        """
        with memory_errors(self._name):
            self._plan = build_plan(self._program, self._tier, pool)

    def run(self, arrays: Mapping[str, Floats]) -> list[int]:
        """Run once on the memory of every input and output, by name; one may be both, where elements stay apart.

        Returns:
            how long each step took, in ns.

        Raises:
            PowerlabError: a step could not compute with the numbers it was given, which it names.
        """
        try:
            took_ns: list[int] = self._plan.run_timed(*self._bound(arrays))
        except RuntimeError as error:
            raise PowerlabError(str(error)) from error
        return took_ns

    def repeat(self, arrays: Mapping[str, Floats], first: int, last: int, times: int) -> int:
        """Run the steps ``first`` to ``last - 1``, all of them ``times`` times over; return how long that took, in ns.

        They read what earlier steps left in the arena.
        """
        return int(self._plan.repeat(*self._bound(arrays), first, last, times))

    def kernels(self) -> tuple[str, ...]:
        """Return what computes each step."""
        return tuple(kernel for kernel, _ in self._plan.steps())

    def _bound(self, arrays: Mapping[str, Floats]) -> tuple[list[Floats], list[Floats]]:
        """Return the memory of all inputs, and of all outputs, in their order."""
        inputs = [*(arrays[info.name] for info in self._inputs), *self._program.hidden_inputs]
        return inputs, [arrays[info.name] for info in self._outputs]
