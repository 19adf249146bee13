"""A graph of a step, planned: arrays go in and come out by the graph's names."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.work import StepWork
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.prepared.prepared import memory_errors, prepare
from powerlab.engine.program.outputs import written_in_place
from powerlab.engine.program.program import Floats
from powerlab.engine.program.storage import FLOAT_BYTES, Space
from powerlab.engine.runtime.arena import lay_out
from powerlab.engine.runtime.plan import build_plans
from powerlab.engine.target.tiers import BF16, FP32, Tier, choose_tier
from powerlab.engine.training.norms import fuse_norms

Bound = tuple[list[Floats], list[Floats]]
"""The memory of inputs and outputs."""


def training_tier(precision: str) -> Tier:
    """Return the kernels to train with.

    Raises:
        PowerlabError: models are not trained in this precision, or not on this processor.
    """
    if precision not in {FP32, BF16}:
        raise PowerlabError(f"models are trained in {FP32} or {BF16}, not in {precision!r}.")
    tier = choose_tier()
    if precision == BF16 and not tier.pairs:
        raise PowerlabError(
            f"the engine tier {tier.name} has no instructions for bfloat16 on this processor; train in {FP32}."
        )
    return replace(tier, precision=precision)


class Repeatable(Protocol):
    """Steps that can be timed and repeated one by one, on the memory of inputs and outputs by name."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what each step computes: names of nodes."""

    @property
    def work(self) -> tuple[StepWork, ...]:
        """Return what each step has to do."""

    def kernels(self) -> tuple[str, ...]:
        """Return what computes each step."""

    def run(self, arrays: Mapping[str, Any]) -> list[int]:
        """Run all steps once, and return how long each took, in ns."""

    def repeat(self, arrays: Mapping[str, Any], first: int, last: int, times: int) -> int:
        """Run the steps ``first`` to ``last - 1``, all of them ``times`` times over; return how many ns that took."""


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
        looped: how many steps, from the first on, run image by image: always all of them together.
        work: what each of them has to do.

    Raises:
        PowerlabError: the engine cannot compute what the graph holds.
    """

    def __init__(self, graph: Graph, tier: Tier, threads: int, *, in_place: bool = False) -> None:
        lowered = fuse_norms(optimise(graph, for_cores=False))
        self._name, self._tier = graph.name, tier
        self._inputs, self._outputs = lowered.inputs, lowered.outputs
        prepared = prepare(lowered, tier, threads)
        program, self.work = prepared.program, prepared.work
        self._program = written_in_place(program) if in_place else program
        self.looped = self._program.looped
        self.labels = tuple(step.label for step in self._program.steps)
        self.arena_bytes = FLOAT_BYTES * lay_out(self._program).floats
        self._plan: Any = None

    def build(self, pool: Any) -> None:
        """Take memory, on the threads of a pool.

        Raises:
            PowerlabError: there is not enough.
        """
        (made,) = self.built([pool])
        self._plan = made._plan

    def built(self, pools: Sequence[Any]) -> list[StepPlan]:
        """Return a plan like this one for each pool, with memory of its own; raises as :meth:`build`."""
        with memory_errors(self._name):
            natives = build_plans(self._program, self._tier, pools)
        found = [copy.copy(self) for _ in natives]
        for one, native in zip(found, natives, strict=True):
            one._plan = native
        return found

    def run(self, arrays: Mapping[str, Floats]) -> list[int]:
        """Run once on the memory of every input and output, by name; one may be both, where elements stay apart.

        Returns:
            how long each step took, in ns.

        Raises:
            PowerlabError: a step could not compute with the numbers it was given, which it names.
        """
        with _step_errors():
            took_ns: list[int] = self._plan.run_timed(*self.bound(arrays))
        return took_ns

    def run_some(self, bound: Bound, first: int, last: int) -> int:
        """Run the steps ``first`` to ``last - 1``, once those before them have run; return how long that took, in ns.

        Raises:
            PowerlabError: as for :meth:`run`.
        """
        if first == last:
            return 0
        with _step_errors():
            return int(self._plan.repeat(*bound, first, last, 1))

    def repeat(self, arrays: Mapping[str, Floats], first: int, last: int, times: int) -> int:
        """Run the steps ``first`` to ``last - 1``, all of them ``times`` times over; return how long that took, in ns.

        They read what earlier steps left in the arena.

        Raises:
            PowerlabError: as for :meth:`run`.
        """
        with _step_errors():
            return int(self._plan.repeat(*self.bound(arrays), first, last, times))

    def kernels(self) -> tuple[str, ...]:
        """Return what computes each step."""
        return tuple(kernel for kernel, _ in self._plan.steps())

    def complete_at(self, output: str) -> int:
        """Return the number of steps after which an output is complete."""
        index = [info.name for info in self._outputs].index(output)
        touching = (
            number
            for number, step in enumerate(self._program.steps)
            for tensor in step.tensors()
            if (tensor.storage.space, tensor.storage.index) == (Space.OUTPUT, index)
        )
        return 1 + max(touching)

    def bound(self, arrays: Mapping[str, Floats]) -> Bound:
        """Return the memory of all inputs, and of all outputs, in their order."""
        inputs = [*(arrays[info.name] for info in self._inputs), *self._program.hidden_inputs]
        return inputs, [arrays[info.name] for info in self._outputs]


@contextmanager
def _step_errors() -> Iterator[None]:
    """Let what a kernel cannot compute with be a sentence."""
    try:
        yield
    except RuntimeError as error:
        raise PowerlabError(str(error)) from error
