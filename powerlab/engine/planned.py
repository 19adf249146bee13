"""A graph with static shapes, planned: arrays go in and come out by name, checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.convolutions.choosing import Chooser
from powerlab.engine.ir.rounds import Round
from powerlab.engine.prepared.prepared import Prepared, memory_errors
from powerlab.engine.program.operand import Element, as_floats, element_of, readable
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.outside_types import to_engine, to_model
from powerlab.engine.runtime.plan import Keep, build_plan
from powerlab.engine.runtime.slices import SlicedPlan
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import Tier, native_engine
from powerlab.engine.tuning.choosing import by_tuning
from powerlab.engine.tuning.kept import Tunings


class Planning(Struct, frozen=True, kw_only=True):
    """How graphs are planned.

    Attributes:
        tier: the kernels to use.
        threads: of all slices together.
        spin_us: how long a waiting thread spins before it sleeps, in microseconds.
        tunings: what was tuned here, to choose by; None: the cost model chooses.
        slices: parts the batch is cut into, which run at the same time.
    """

    tier: Tier
    threads: int
    spin_us: int
    tunings: Tunings | None = None
    slices: int = 1

    @property
    def slice_threads(self) -> int:
        """Return the threads of a slice."""
        return self.threads // self.slices

    @property
    def chooser(self) -> Chooser | None:
        """Return what chooses by what was tuned; None where nothing was."""
        return None if self.tunings is None else by_tuning(self.tunings, this_machine(self.tier, self.slice_threads))


class Ran(Struct, frozen=True):
    """What rounds of a Loop made.

    Attributes:
        rounds: how many there were.
        goes_on: whether the last one said that there is another.
        states: after it, by the names of inputs.
        gathered: what each round made, the rounds along the first axis.
    """

    rounds: int
    goes_on: bool
    states: dict[str, NDArray[Any]]
    gathered: list[NDArray[Any]]


class PlannedGraph:
    """A prepared model, ready to run.

    Args:
        prepared: the model.
        planning: how to plan it.
        pool: the threads that run it; not used for slices, which have threads of their own.
        keep: see :func:`powerlab.engine.runtime.plan.build_plan`.
        lender: a graph that never runs while this one does, whose memory for activations this one uses if it fits;
            not used for slices.

    Attributes:
        inputs: name -> shape of every input.
        outputs: name -> shape of every output.
        dtypes: name -> numpy type of every input and output, as the model says.
        work: what each step has to do, in the order of :meth:`steps`; of one slice.
        choices: what was chosen for each step; None where there was no choice.

    Raises:
        PowerlabError: the model does not fit into memory.
    """

    def __init__(
        self,
        prepared: Prepared,
        planning: Planning,
        pool: Any,
        keep: Keep | None = None,
        *,
        lender: PlannedGraph | None = None,
    ) -> None:
        tier, threads, slices = planning.tier, planning.threads, planning.slices
        program = prepared.program
        self._plan: Any
        alone = [
            not step.is_cut and work.is_small(tier.vector_width, step.weights)
            for step, work in zip(program.steps, prepared.work, strict=True)
        ]
        with memory_errors(prepared.name):
            if slices == 1:
                self._plan = build_plan(program, tier, pool, keep, alone=alone, lender=lender and lender._plan)
            else:
                count = len(prepared.inputs)
                self._plan = SlicedPlan(program, tier, threads, planning.spin_us, slices=slices, inputs=count)
        self._hidden_inputs = program.hidden_inputs
        self.work = prepared.work
        self.choices = tuple(step.choice for step in program.steps)
        self.inputs, self.outputs = dict(prepared.inputs), dict(prepared.outputs)
        self._elements = {name: element_of(np.dtype(prepared.computed[name])) for name in self.outputs}
        self.dtypes = {name: np.dtype(kind) for name, kind in {**prepared.computed, **prepared.outside}.items()}

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once: see :meth:`powerlab.engine.Session.run`."""
        outputs = self._fresh_outputs()
        self._call(self._plan.run, inputs, outputs)
        return {name: self._returned(name, memory) for name, memory in outputs.items()}

    def timed(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str, int]]]:
        """Run once; return the outputs, and kernel, node and duration in nanoseconds of every step, in order."""
        outputs = self._fresh_outputs()
        durations = self._call(self._plan.run_timed, inputs, outputs)
        steps = [(kernel, label, ns) for (kernel, label), ns in zip(self.steps(), durations, strict=True)]
        return {name: self._returned(name, memory) for name, memory in outputs.items()}, steps

    def rounds(self, body: Round, inputs: Mapping[str, NDArray[Any]], first: int, most: int) -> Ran:
        """Run the body of a Loop, of which this is the graph, round after round.

        Args:
            body: what it hands on.
            inputs: its inputs but for the number of the round; states as they are before the first round.
            first: the number of the first round.
            most: how many rounds there may be, 1 at least.

        Raises:
            PowerlabError: as :meth:`run` does.
        """
        names, places = list(self.inputs), list(self.outputs)
        outputs = [np.empty(2 * memory.size, np.float32) for memory in self._fresh_outputs().values()]
        floats = {name: memory.size // 2 for name, memory in zip(places, outputs, strict=True)}
        rows = [np.empty(most * floats[name], np.float32) for name in body.gathered]
        changing = [(state, made) for state, made in body.states if state != made]
        try:
            done = native_engine().run_rounds(
                plan=self._plan,
                inputs=self._checked({**inputs, body.number: np.asarray(first, np.int64)}),
                outputs=outputs,
                number=names.index(body.number),
                goes_on=places.index(body.goes_on) if body.goes_on else -1,
                states=[(names.index(state), places.index(made)) for state, made in changing],
                gathered=[(places.index(name), memory) for name, memory in zip(body.gathered, rows, strict=True)],
                first=first,
                most=most,
            )
        except RuntimeError as error:
            raise PowerlabError(str(error)) from error
        half = (done - 1) % 2
        last = {name: memory.reshape(2, -1)[half] for name, memory in zip(places, outputs, strict=True)}
        states = {state: self._returned(made, last[made]) for state, made in changing}
        gathered = [
            self._returned(name, memory[: done * floats[name]], done)
            for name, memory in zip(body.gathered, rows, strict=True)
        ]
        goes_on = not body.goes_on or bool(self._returned(body.goes_on, last[body.goes_on]).all())
        return Ran(done, goes_on, states, gathered)

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every step of the plan, in the order they run."""
        return list(self._plan.steps())

    def repeat(self, inputs: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run some steps many times over: see :meth:`powerlab.engine.Session.repeat`."""
        return int(
            self._call(
                lambda arrays, out: self._plan.repeat(arrays, out, first, last, times), inputs, self._fresh_outputs()
            )
        )

    def room_floats(self) -> int:
        """Return how many floats the memory for activations has, of which more may be there than this graph needs."""
        return int(self._plan.room_floats())

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        self._plan.poison()

    def _call(self, run: Callable[..., Any], inputs: Mapping[str, Any], outputs: Mapping[str, Floats]) -> Any:
        try:
            return run(self._checked(inputs), list(outputs.values()))
        except RuntimeError as error:
            raise PowerlabError(str(error)) from error

    def _fresh_outputs(self) -> dict[str, Floats]:
        return {
            name: np.empty(math.prod(shape) * self._elements[name].floats, np.float32)
            for name, shape in self.outputs.items()
        }

    def _returned(self, name: str, memory: Floats, *rounds: int) -> NDArray[Any]:
        """Return what a plan wrote as the model's own type, in its shape; of several rounds, along a first axis."""
        values = memory.view(np.int64) if self._elements[name] is Element.INT else memory
        return to_model(values, self.dtypes[name]).reshape((*rounds, *self.outputs[name]))

    def _checked(self, inputs: Mapping[str, Any]) -> list[Floats]:
        """Return the arrays in the plan's order, or raise PowerlabError with what was expected."""
        arrays: list[Floats] = []
        for name, array in checked_inputs(self.inputs, self.dtypes, inputs).items():
            if element_of(self.dtypes[name]) is Element.INT:
                arrays.append(as_floats(array))
            else:
                arrays.append(readable(to_engine(np.asarray(array), np.dtype(np.float32))))
        return [*arrays, *self._hidden_inputs]


def checked_inputs(
    shapes: Mapping[str, tuple[int, ...] | None], dtypes: Mapping[str, np.dtype[Any]], inputs: Mapping[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return the inputs in the model's order.

    Args:
        shapes: input name -> shape, in which a size below 0 is open; None: any shape.
        dtypes: input name -> numpy type.
        inputs: what was given.

    Raises:
        PowerlabError: an input is missing, unknown, or has another shape or type; says what was expected.
    """

    def expected() -> str:
        return ", ".join(f"{name!r} {dtypes[name]} {_sizes(shape)}" for name, shape in shapes.items())

    for name in inputs:
        if name not in shapes:
            raise PowerlabError(f"the model has no input {name!r}; it takes {expected()}.")
    arrays: dict[str, NDArray[Any]] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            raise PowerlabError(f"the input {name!r} is missing; the model takes {expected()}.")
        array, dtype = inputs[name], dtypes[name]
        known = isinstance(array, np.ndarray | np.generic)  # a number of numpy's is an array without axes
        if not known or array.dtype != dtype:
            found = array.dtype if known else type(array).__name__
            raise PowerlabError(
                f"the input {name!r} must be a {dtype} array, not {found}; the model takes {expected()}."
            )
        if shape is not None and not _fits(array.shape, shape):
            raise PowerlabError(f"the input {name!r} has shape {list(array.shape)}; the model takes {expected()}.")
        if dtype == np.uint64 and np.max(array, initial=0) > np.iinfo(np.int64).max:
            raise PowerlabError(f"the input {name!r} holds a number above 2^63 - 1, the largest the engine has.")
        arrays[name] = array
    return arrays


def _fits(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(found) == len(wanted) and all(size in (has, -1) for has, size in zip(found, wanted, strict=True))


def _sizes(shape: tuple[int, ...] | None) -> str:
    if shape is None:
        return "of any shape"
    return f"[{', '.join('any' if size < 0 else str(size) for size in shape)}]"
