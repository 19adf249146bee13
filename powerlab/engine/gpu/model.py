"""A network on a GPU, ready to run: the same face as :class:`powerlab.engine.planned.PlannedGraph`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.device import PROCESSOR, chosen, devices, keep_pipelines, native, opened
from powerlab.engine.gpu.kernels import spirv
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.gpu.program import WORD_BYTES, GpuProgram, lifetimes
from powerlab.engine.gpu.work import dispatch_work
from powerlab.engine.ir.graph import Graph
from powerlab.engine.planned import checked_inputs
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.operand import readable
from powerlab.engine.program.storage import Space
from powerlab.engine.runtime.arena import place
from powerlab.engine.runtime.outside_types import to_engine, to_model

TIMEOUT_S = 60.0
"""How long one inference may take before it counts as failed."""

BROADCAST_LANES = 8
"""Of a subgroup, which ``shaders/conv.comp`` counts on where lanes load weights for each other."""

_ALIGNMENT_WORDS = 64
"""256 bytes: no device asks for more of what a kernel sees."""

_ROOMS = {Space.INPUT: 0, Space.OUTPUT: 1, Space.ARENA: 2, Space.CONSTANT: 3}


class GpuModel:
    """A graph on the chosen GPU.

    Args:
        graph: optimised, without chains.
        half: whether numbers between kernels and weights are stored in 16 bits.
        timeout_s: how long one inference may take.
        synchronised: whether dispatches wait for what they need; only a test of the tests says no.
        host_constants: whether weights are written where they lie, if the host sees that.

    Attributes:
        inputs: name -> shape of every input.
        outputs: name -> shape of every output.
        dtypes: name -> numpy type of every input and output, as the model says.
        work: what each dispatch has to do, in the order of :meth:`steps`.
        choices: what was chosen for each dispatch: nothing yet.
        arena_bytes: memory that all activations share.

    Raises:
        PowerlabError: there is no GPU, the graph holds what is not supported there, or it does not fit.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        half: bool = False,
        timeout_s: float = TIMEOUT_S,
        synchronised: bool = True,
        host_constants: bool = True,
    ) -> None:
        info = devices()[chosen()]
        if half and not info.half_storage:
            raise PowerlabError(f"{info.name} stores no 16-bit numbers; ask for fp32.")
        if info.subgroup_lanes == 0:
            raise PowerlabError(f"the driver of {info.name} lets lanes share nothing; install a newer one.")
        broadcasts = info.kind == PROCESSOR and info.subgroup_lanes >= BROADCAST_LANES
        program = lower(graph, half=half, largest_bytes=info.largest_buffer_bytes, broadcasts=broadcasts)
        self.inputs = {one.name: one.shape for one in graph.inputs}
        self.outputs = {one.name: one.shape for one in graph.outputs}
        computed = {one.name: one.dtype for one in (*graph.inputs, *graph.outputs)}
        self.dtypes = {name: np.dtype(graph.outside.get(name, dtype)) for name, dtype in computed.items()}
        self.work = dispatch_work(graph, program)
        self.choices: tuple[Choice | None, ...] = (None,) * len(program.dispatches)
        self._timeout_ns = int(timeout_s * 1e9)
        self._device = opened(host_constants=host_constants)
        self._places = {space: _offsets(sizes) for space, sizes in _sizes(program).items()}
        with _sentences():
            self._plan = self._built(program, synchronised=synchronised)
        keep_pipelines(self._device)

    def _built(self, program: GpuProgram, *, synchronised: bool) -> Any:
        arena = place(lifetimes(program.dispatches), _ALIGNMENT_WORDS)
        self.arena_bytes = WORD_BYTES * arena.floats
        sizes = [self._places[space][-1] for space in (Space.INPUT, Space.OUTPUT)]
        rooms = [*sizes, self.arena_bytes, self._places[Space.CONSTANT][-1]]
        plan = native().Plan(self._device, rooms, synchronised)
        for offset, constant in zip(self._places[Space.CONSTANT], program.constants, strict=False):
            plan.upload(offset, constant.bytes())
        for one in program.dispatches:
            bindings = []
            for index, storage in enumerate(one.buffers):
                if storage.space is Space.ARENA:
                    offset = WORD_BYTES * arena.offsets[storage.number]
                else:
                    offset = self._places[storage.space][storage.index]
                bindings.append((_ROOMS[storage.space], offset, WORD_BYTES * storage.floats, index < one.written))
            code = spirv(one.kernel, half=program.half)
            name = f"{one.kernel}_{'fp16' if program.half else 'fp32'}"
            plan.add(name, code, list(one.constants), one.label, bindings, one.push, list(one.groups))
        plan.finish()
        return plan

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once: see :meth:`powerlab.engine.Session.run`."""
        return self._call(self._plan.run, inputs)[0]

    def timed(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str, int]]]:
        """Run once; return the outputs, and kernel, node and nanoseconds on the GPU of every dispatch, in order."""
        outputs, durations = self._call(self._plan.run_timed, inputs)
        steps = [(kernel, label, ns) for (kernel, label), ns in zip(self.steps(), durations, strict=True)]
        return outputs, steps

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every dispatch, in the order they run."""
        return list(self._plan.steps())

    def repeat(self, inputs: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run some dispatches many times over: see :meth:`powerlab.engine.Session.repeat`."""
        with _sentences():
            return int(self._plan.repeat(self._given(inputs), first, last, times, self._timeout_ns))

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        with _sentences():
            self._plan.poison()

    @property
    def barriers(self) -> int:
        """Return how many dispatches wait for those before them."""
        return int(self._plan.barriers)

    def _call(self, run: Callable[..., Any], inputs: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], Any]:
        given = self._given(inputs)
        made = {name: np.empty(math.prod(shape), np.float32) for name, shape in self.outputs.items()}
        offsets = self._places[Space.OUTPUT]
        out = [(offset, memory.view(np.uint8)) for offset, memory in zip(offsets, made.values(), strict=False)]
        with _sentences():
            result = run(given, out, self._timeout_ns)
        return {
            name: to_model(memory, self.dtypes[name]).reshape(self.outputs[name]) for name, memory in made.items()
        }, result

    def _given(self, inputs: Mapping[str, Any]) -> list[tuple[int, NDArray[np.uint8]]]:
        checked = checked_inputs(self.inputs, self.dtypes, inputs)
        arrays = [readable(to_engine(np.asarray(one), np.dtype(np.float32))) for one in checked.values()]
        offsets = self._places[Space.INPUT]
        return [(at, one.reshape(-1).view(np.uint8)) for at, one in zip(offsets, arrays, strict=False)]


def _sizes(program: GpuProgram) -> dict[Space, Sequence[int]]:
    constants = [constant.words for constant in program.constants]
    return {Space.INPUT: program.inputs, Space.OUTPUT: program.outputs, Space.CONSTANT: constants}


def _offsets(words: Sequence[int]) -> list[int]:
    """Return the byte at which each of several pieces begins, and behind them the size of all."""
    offsets = [0]
    for size in words:
        offsets.append(offsets[-1] + -(-size // _ALIGNMENT_WORDS) * _ALIGNMENT_WORDS * WORD_BYTES)
    return offsets


class _sentences:  # noqa: N801  a context manager reads as a function
    """Lets what the native core refuses be a sentence for whoever asked."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise a RuntimeError again as PowerlabError."""
        if isinstance(error, RuntimeError):
            raise PowerlabError(str(error)) from error
