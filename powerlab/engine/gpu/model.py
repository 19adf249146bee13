"""A network on a GPU, ready to run: the same face as :class:`powerlab.engine.planned.PlannedGraph`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.gpu.choice.method import Chooser
from powerlab.engine.gpu.device import chosen_info, keep_pipelines, native, opened, this_target
from powerlab.engine.gpu.exchange import Exchange
from powerlab.engine.gpu.kernels import spirv
from powerlab.engine.gpu.layout import Layout
from powerlab.engine.gpu.lowering import lower
from powerlab.engine.gpu.program import GpuProgram
from powerlab.engine.gpu.work import dispatch_work
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.storage import Space

TIMEOUT_S = 60.0
"""How long one inference may take before it counts as failed."""


class GpuModel:
    """A graph on the chosen GPU.

    The slices of a batch are recorded side by side: each step of one beside the same step of the others, without a
    barrier between them, for they share nothing but the weights; or they take turns among several queues.

    Args:
        graph: optimised, without chains; of one slice.
        half: whether numbers between kernels and weights are stored in 16 bits.
        choose: says how each convolution is computed; None: a rule does.
        slices: parts the batch (the first axis of every input) is cut into.
        queues: of the device, over which the slices are spread.
        timeout_s: how long one inference may take.
        synchronised: whether dispatches wait for what they need; only a test of the tests says no.
        host_constants: whether weights are written where they lie, if the host sees that.

    Attributes:
        inputs: name -> shape of every input, of all slices.
        outputs: name -> shape of every output, of all slices.
        dtypes: name -> numpy type of every input and output, as the model says.
        work: what each dispatch of a slice has to do, in the order of :meth:`steps`.
        choices: of the processor's kernels for each dispatch: none.
        arena_bytes: memory that all activations share.

    Raises:
        PowerlabError: there is no GPU, the graph holds what is not supported there, or it does not fit.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        half: bool = False,
        choose: Chooser | None = None,
        slices: int = 1,
        queues: int = 1,
        timeout_s: float = TIMEOUT_S,
        synchronised: bool = True,
        host_constants: bool = True,
    ) -> None:
        info = chosen_info()
        if half and not info.half_storage:
            raise PowerlabError(f"{info.name} stores no 16-bit numbers; ask for fp32.")
        program = lower(graph, this_target(), half=half, choose=choose)
        self._slices, self._queues = slices, queues
        self.inputs = {one.name: self._whole(one.shape) for one in graph.inputs}
        self.outputs = {one.name: self._whole(one.shape) for one in graph.outputs}
        computed = {one.name: one.dtype for one in (*graph.inputs, *graph.outputs)}
        self.dtypes = {name: np.dtype(graph.outside.get(name, dtype)) for name, dtype in computed.items()}
        self.work = dispatch_work(graph, program)
        self.choices: tuple[Choice | None, ...] = (None,) * len(program.dispatches)
        self._timeout_ns = int(timeout_s * 1e9)
        self._device = opened(host_constants=host_constants)
        self._layout = Layout(program, slices)
        self._exchange = Exchange(
            inputs=self.inputs,
            outputs=self.outputs,
            dtypes=self.dtypes,
            picked=program.picked,
            bounded=program.bounded,
            layout=self._layout,
            slices=slices,
        )
        self.arena_bytes = self._layout.arena_bytes
        with sentences():
            self._plan = self._built(program, synchronised=synchronised)
        keep_pipelines(self._device)

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self._slices * shape[0], *shape[1:]) if self._slices > 1 else shape

    def _built(self, program: GpuProgram, *, synchronised: bool) -> Any:
        layout = self._layout
        plan = native().Plan(self._device, layout.rooms(), synchronised)
        for offset, constant in zip(layout.offsets(Space.CONSTANT), program.constants, strict=True):
            plan.upload(offset, constant.bytes())
        for one in program.dispatches:
            code, name = spirv(one.kernel, half=program.half), f"{one.kernel}_{'fp16' if program.half else 'fp32'}"
            for part in range(self._slices):
                bindings = [
                    layout.binding(storage, part, written=index < one.written)
                    for index, storage in enumerate(one.buffers)
                ]
                queue = part % self._queues
                plan.add(name, code, list(one.constants), one.label, bindings, one.push, list(one.groups), queue)
        plan.finish(len(program.dispatches) * self._slices, [])
        return plan

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once: see :meth:`powerlab.engine.Session.run`."""
        return self._call(self._plan.run, inputs)[0]

    def timed(self, inputs: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], list[tuple[str, str, int]]]:
        """Run once; return the outputs, and kernel, node and nanoseconds of each dispatch of the first slice."""
        outputs, durations = self._call(self._plan.run_timed, inputs)
        own = durations[:: self._slices]
        steps = [(kernel, label, ns) for (kernel, label), ns in zip(self.steps(), own, strict=True)]
        return outputs, steps

    def steps(self) -> list[tuple[str, str]]:
        """Return kernel and node of every dispatch of a slice, in the order they run."""
        return list(self._plan.steps())[:: self._slices]

    def repeat(self, inputs: Mapping[str, NDArray[Any]], first: int, last: int, times: int) -> int:
        """Run some dispatches of all slices many times over: see :meth:`powerlab.engine.Session.repeat`."""
        first, last = first * self._slices, last * self._slices
        with sentences():
            return int(self._plan.repeat(self._exchange.given(inputs), first, last, times, self._timeout_ns))

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; results of the next run must be the same."""
        with sentences():
            self._plan.poison()

    @property
    def barriers(self) -> int:
        """Return how many dispatches wait for those before them."""
        return int(self._plan.barriers)

    def _call(self, run: Callable[..., Any], inputs: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], Any]:
        given, made = self._exchange.given(inputs), self._exchange.room()
        with sentences():
            result = run(given, self._exchange.out(made), self._timeout_ns)
        return self._exchange.results(made), result


class sentences:  # noqa: N801  a context manager reads as a function
    """Lets what the native core refuses be a sentence for whoever asked."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise a RuntimeError or MemoryError again as PowerlabError."""
        if isinstance(error, MemoryError):
            raise TooLargeError(str(error)) from error
        if isinstance(error, RuntimeError):
            raise PowerlabError(str(error)) from error
