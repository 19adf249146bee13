"""A model, ready to run: the engine's public face."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen import chosen_algorithms, lower
from powerlab.engine.codegen.batch_axis import check_images_apart
from powerlab.engine.codegen.convolutions.choosing import Chooser
from powerlab.engine.codegen.work import step_work
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.operand import Element, as_floats, element_of, readable
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.plan import build_plan
from powerlab.engine.runtime.slices import SlicedPlan, check_slices, doubled_shapes, slice_shapes
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import Tier, choose_tier
from powerlab.engine.tuning.choosing import by_tuning
from powerlab.engine.tuning.kept import has_tunings, read_tunings, this_place

SPIN_US = 200
"""How long an engine thread that has nothing to do spins before it sleeps, in microseconds."""

MOST_THREADS = 1024
MOST_SPIN_US = 1_000_000
"""A second of spinning; more than that is no waiting for the next step of a model."""


def check_threads(threads: int) -> None:
    """Raise PowerlabError where ``threads`` is no number of threads."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise PowerlabError(f"threads must be an integer from 1 to {MOST_THREADS}, not {threads!r}.")


class Session:
    """A model loaded, optimised and planned for one shape of inputs, with threads of its own.

    Runs from several threads take turns. A session belongs to the process that made it.

    Args:
        model: the path of an ONNX file, or the name of a model of the zoo.
        threads: threads that compute, the caller of :meth:`run` being one; the engine starts no others. None:
            as many as this process has processors, by its affinity mask and the quota of its control group. Where there
            are fewer processors, waiting threads sleep at once: one that spins would hold up those it waits for.
        shapes: input name -> shape, for inputs whose shape the model leaves open, or to set another batch size.
        spin_us: how long a thread that has nothing to do spins before it sleeps, in microseconds.
        tuned: whether to choose by what ``powerlab engine tune`` found here, where it did.
        slices: parts the batch (the first axis of every input) is cut into, which run at the same time on
            ``threads`` / ``slices`` threads each, with the same weights. Results are the same bits as without.

    Attributes:
        inputs: name -> shape of every input.
        outputs: name -> shape of every output.
        dtypes: name -> numpy type of every input and output, as the model says; what is float16 or float64 is
            converted, for the engine computes in float32.
        tier: the instruction set in use, such as ``avx512``.
        threads: threads that compute.
        slices: parts the batch is cut into; steps, work and choices are those of one.
        work: what each step of the plan has to do, in the order of :meth:`steps`.
        choices: what was chosen for each step; None where there was no choice.

    Raises:
        PowerlabError: the model cannot be read or holds what the engine cannot compute.
    """

    def __init__(
        self,
        model: str | Path | Graph,
        threads: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        spin_us: int = SPIN_US,
        tuned: bool = True,
        *,
        slices: int = 1,
    ) -> None:
        usable = usable_cpus()
        threads = usable if threads is None else threads
        check_threads(threads)
        if isinstance(spin_us, bool) or not isinstance(spin_us, int) or not 0 <= spin_us <= MOST_SPIN_US:
            raise PowerlabError(f"spin_us must be an integer from 0 to {MOST_SPIN_US}, not {spin_us!r}.")
        check_slices(slices, threads)
        graph = _optimised(model, shapes)
        part = graph if slices == 1 else _part(model, graph, slices)
        tier, spin_us = choose_tier(), spin_us if threads <= usable else 0
        try:
            chooser = _chooser(tier, threads // slices) if tuned else None
            algorithms = {} if part is graph else chosen_algorithms(graph, tier, threads // slices, chooser)
            program = lower(part, tier, threads // slices, chooser, algorithms)
            if slices == 1:
                self._plan = build_plan(program, tier, threads, spin_us)
            else:
                self._plan = SlicedPlan(program, tier, threads, spin_us, slices=slices, inputs=len(graph.inputs))
        except RuntimeError as error:
            raise PowerlabError(str(error)) from error
        except MemoryError as error:
            raise PowerlabError(
                f"the model {graph.name!r} does not fit into memory with inputs of this size; use a smaller batch."
            ) from error
        self._hidden_inputs = program.hidden_inputs
        self.work = step_work(part, program.steps)
        self.choices = tuple(step.choice for step in program.steps)
        self.tier = tier.name
        self.threads = threads
        self.slices = slices
        self.inputs = {info.name: info.shape for info in graph.inputs}
        self.outputs = {info.name: info.shape for info in graph.outputs}
        self._elements = {info.name: element_of(info.dtype) for info in graph.outputs}
        self.dtypes = {info.name: info.dtype for info in (*graph.inputs, *graph.outputs)} | dict(graph.outside)

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the model once, with the interpreter lock released.

        Args:
            inputs: input name -> array of the shape in :attr:`inputs` and the type in :attr:`dtypes`.

        Returns:
            Output name -> a new array of the type in :attr:`dtypes`.

        Raises:
            PowerlabError: an input is missing, unknown, or has another shape or type; or the model cannot compute with
                what it holds, as with an index outside a table.
        """
        outputs = self._fresh_outputs()
        self._call(self._plan.run, inputs, outputs)
        return {name: self._returned(name, memory) for name, memory in outputs.items()}

    def profile(self, inputs: Mapping[str, NDArray[Any]]) -> list[tuple[str, str, int]]:
        """Run the model once and return kernel, node and duration in nanoseconds of every step, in order."""
        durations = self._call(self._plan.run_timed, inputs, self._fresh_outputs())
        return [(kernel, label, ns) for (kernel, label), ns in zip(self.steps(), durations, strict=True)]

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every step of the plan, in the order they run."""
        return list(self._plan.steps())

    def repeat(self, inputs: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run the steps ``first`` to ``last - 1`` of the plan, all of them ``times`` times over.

        They read what earlier steps left in the arena: run those once before. A step repeated by itself finds its
        operands unchanged, but in caches where the steps between two runs would have replaced them.

        Returns:
            how long that took, in nanoseconds.

        Raises:
            PowerlabError: an input is missing, unknown, or has another shape or type.
            ValueError: the plan has no such steps.
        """
        return int(
            self._call(
                lambda arrays, out: self._plan.repeat(arrays, out, first, last, times), inputs, self._fresh_outputs()
            )
        )

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

    def _returned(self, name: str, memory: Floats) -> NDArray[Any]:
        """Return what a plan wrote as the model's own type, in its shape."""
        values = memory.view(np.int64) if self._elements[name] is Element.INT else memory
        return values.astype(self.dtypes[name], copy=False).reshape(self.outputs[name])

    def _checked(self, inputs: Mapping[str, Any]) -> list[Floats]:
        """Return the arrays in the plan's order, or raise PowerlabError with what was expected."""
        expected = ", ".join(f"{name!r} {self.dtypes[name]} {list(shape)}" for name, shape in self.inputs.items())
        for name in inputs:
            if name not in self.inputs:
                raise PowerlabError(f"the model has no input {name!r}; it takes {expected}.")
        arrays: list[Floats] = []
        for name, shape in self.inputs.items():
            if name not in inputs:
                raise PowerlabError(f"the input {name!r} is missing; the model takes {expected}.")
            array, dtype = inputs[name], self.dtypes[name]
            known = isinstance(array, np.ndarray | np.generic)  # a number of numpy's is an array without axes
            if not known or array.dtype != dtype:
                found = array.dtype if known else type(array).__name__
                raise PowerlabError(
                    f"the input {name!r} must be a {dtype} array, not {found}; the model takes {expected}."
                )
            if array.shape != shape:
                raise PowerlabError(f"the input {name!r} has shape {list(array.shape)}; the model takes {expected}.")
            if dtype == np.uint64 and np.max(array, initial=0) > np.iinfo(np.int64).max:
                raise PowerlabError(f"the input {name!r} holds a number above 2^63 - 1, the largest the engine has.")
            arrays.append(as_floats(array) if element_of(dtype) is Element.INT else readable(array))
        return [*arrays, *self._hidden_inputs]


def _part(model: str | Path | Graph, whole: Graph, slices: int) -> Graph:
    """Return the optimised graph for one slice of the batch that ``whole`` takes."""
    if isinstance(model, Graph):
        raise PowerlabError("a graph has its batch size already; give a model's name or path to cut it into slices.")
    part = _optimised(model, slice_shapes(whole, slices))
    check_images_apart(whole, _optimised(model, doubled_shapes(whole)))
    return part


def _chooser(tier: Tier, threads: int) -> Chooser | None:
    """Return what chooses by what was tuned here; None where nothing was."""
    if not has_tunings():
        return None
    return by_tuning(read_tunings(this_place(tier)), this_machine(tier, threads))


def _optimised(model: str | Path | Graph, shapes: Mapping[str, tuple[int, ...]] | None) -> Graph:
    """Return the graph to lower; a graph given as such counts as optimised."""
    if isinstance(model, Graph):
        if shapes:
            raise PowerlabError("a graph has its shapes already; give shapes with a model's name or path only.")
        return model
    from powerlab.engine.frontend.load import load_graph
    from powerlab.engine.passes import optimise

    return optimise(load_graph(model, shapes))
