"""Steps of training on a GPU: submitted once each, weights and all that is kept of them stay there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.gpu.device import check_queues, chosen_info, keep_pipelines, native, opened, this_target
from powerlab.engine.gpu.exchange import Exchange
from powerlab.engine.gpu.kernels import spirv
from powerlab.engine.gpu.layout import Layout
from powerlab.engine.gpu.model import TIMEOUT_S, GpuModel, sentences
from powerlab.engine.gpu.program import Dispatch
from powerlab.engine.gpu.training.program import StepProgram, lower_step
from powerlab.engine.gpu.training.run import GpuRun
from powerlab.engine.gpu.work import dispatch_work
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.session import SPIN_US
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import FP32
from powerlab.engine.training.batches import for_plans
from powerlab.engine.training.diagnosis import FINITE, not_finite, origin
from powerlab.engine.training.parts import PARTS, backward_from
from powerlab.engine.training.plans import Repeatable, training_tier
from powerlab.engine.training.slices import slice_of
from powerlab.engine.training.step import TrainingStep

_GIB = 2**30

_NUMBERS = "optimizer.numbers"
"""The input that holds what the optimizer gives for a step."""


class GpuTrainer:
    """A model in training on the chosen GPU.

    The slices of a batch are recorded side by side, or take turns among several queues, as those of an inference.

    Args:
        network: of one slice, with the weights to begin with.
        step: that it is trained by.
        slices: parts of the batch.
        queues: of the device, over which the slices are spread.

    Attributes:
        lanes: how many slices run at the same time: all of them.
        activation_bytes: memory that activations of all slices share.
        planned_bytes: all memory on the GPU.
        part_ns: how long forward pass, backward pass and update of the latest step took, in ns; empty where the GPU
            has no timestamps.

    Raises:
        PowerlabError: there is no GPU, the step holds what is not supported there, or it does not fit.
    """

    def __init__(self, network: Graph, step: TrainingStep, *, slices: int = 1, queues: int = 1) -> None:
        check_queues(queues, slices)
        info = chosen_info()
        self._slices, self._queues, self.lanes = slices, queues, slices
        self._lowered: StepProgram = lower_step(network, step, this_target(), slices)
        program = self._lowered.program
        self._layout = Layout(program, slices)
        rooms = self._layout.rooms()
        self.activation_bytes, self.planned_bytes = self._layout.arena_bytes, sum(rooms)
        if self.planned_bytes > info.memory_bytes:
            raise TooLargeError(
                f"training {network.name!r} needs {self.planned_bytes / _GIB:.3g} GiB for its activations, gradients "
                f"and weights, and {info.name} has {info.memory_bytes / _GIB:.3g} GiB; use a smaller batch, smaller "
                "images or a smaller model."
            )
        loss = self._lowered.graph.outputs[0].name
        inputs = {one.name: self._whole(one.shape) for one in self._lowered.data}
        self._exchange = Exchange(
            inputs=inputs | {_NUMBERS: (slices * len(self._lowered.numbers),)},
            outputs={loss: (slices,)},
            dtypes={one.name: one.dtype for one in self._lowered.data}
            | dict.fromkeys((_NUMBERS, loss), np.dtype(np.float32)),
            picked=program.picked,
            bounded=program.bounded,
            layout=self._layout,
            slices=slices,
        )
        self.part_ns: dict[str, int] = {}
        self._network, self._step = network, step
        self._answers: GpuModel | None = None
        self._device = opened()
        with sentences():
            self._plan = self._built(rooms)
        keep_pipelines(self._device)

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (self._slices * shape[0], *shape[1:]) if self._slices > 1 else shape

    def _built(self, rooms: Sequence[int]) -> Any:
        program, slices, passes = self._lowered.program, self._slices, self._lowered.passes
        plan = native().Plan(self._device, rooms, True)
        for offset, constant in zip(self._layout.offsets(Space.CONSTANT), program.constants, strict=True):
            plan.upload(offset, constant.bytes())
        for number, one in enumerate(program.dispatches):
            for part in range(slices if number < passes else 1):
                self._add(plan, one, part)
        backward = backward_from([one.label for one in program.dispatches[:passes]])
        plan.finish(passes * slices, [0, backward * slices, passes * slices])
        return plan

    def _add(self, plan: Any, one: Dispatch, part: int) -> None:
        bindings = [
            self._layout.binding(storage, part, written=index < one.written)
            for index, storage in enumerate(one.buffers)
        ]
        name, code, queue = f"{one.kernel}_fp32", spirv(one.kernel, half=False), part % self._queues
        plan.add(name, code, list(one.constants), one.label, bindings, one.push, list(one.groups), queue)

    @property
    def barriers(self) -> int:
        """Return how many dispatches wait for those before them."""
        return int(self._plan.barriers)

    def learn(self, given: Mapping[str, NDArray[Any]], numbers: Mapping[str, float], number: int) -> float:
        """Make one step, and return its loss before the weights moved.

        Args:
            given: inputs, labels and what Dropout drops of the whole batch, by the names of the step's graph.
            numbers: the optimizer's.
            number: of the step, from 1 on.

        Raises:
            PowerlabError: the GPU failed, or the loss is not finite, and weights are as before.
        """
        arrays, made = self._exchange.given(self._arrays(given, numbers)), self._exchange.room()
        with sentences():
            self._plan.run(arrays, self._exchange.out(made), int(TIMEOUT_S * 1e9))
            self.part_ns = dict(zip(PARTS, self._plan.section_ns(), strict=False))
        (losses,) = made.values()
        loss = math.fsum(losses) / self._slices
        if not math.isfinite(loss):
            raise not_finite(number, loss, self._origin(given))
        self._answers = None
        return loss

    def sit_out(self) -> None:
        """Leave a step out: nobody waits for it."""

    def runs(
        self, given: Mapping[str, NDArray[Any]], numbers: Mapping[str, float]
    ) -> tuple[tuple[Repeatable, Mapping[str, Any]], ...]:
        """See :meth:`powerlab.engine.training.TrainingSession.runs`."""
        if self._slices > 1:
            raise PowerlabError("the dispatches of slices are timed together; train without slices.")
        return ((self._dispatches, self._arrays(given, numbers)),)

    @cached_property
    def _dispatches(self) -> GpuRun:
        program = self._lowered.program
        work = dispatch_work(self._lowered.graph, program)
        return GpuRun(plan=self._plan, exchange=self._exchange, program=program, work=work)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        names = (*self._step.parameters, *(one.before for one in self._step.statistics))
        return {name: self._read(self._lowered.kept[name], self._network.shape(name)) for name in names}

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter."""
        share = np.float32(self._slices)
        return {
            name: self._read(storage, self._network.shape(name)) / share
            for name, storage in self._lowered.gradients.items()
        }

    def answers(self, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Return what the model as it is now answers to a batch; it is lowered anew after each step."""
        if self._answers is None:
            now = self._network.rewritten(self._network.nodes, constants=self.weights())
            self._answers = GpuModel(optimise(now, for_cores=False), slices=self._slices)
        return self._answers.run(given)

    def poison(self) -> None:
        """Overwrite all intermediate memory with not-a-number; the next step must be the same."""
        with sentences():
            self._plan.poison()

    def _arrays(self, given: Mapping[str, NDArray[Any]], numbers: Mapping[str, float]) -> dict[str, NDArray[Any]]:
        """Return everything that a step reads, by name; each slice has the optimizer's numbers."""
        own = np.array([numbers[name] for name in self._lowered.numbers], np.float32)
        arrays = {name: np.asarray(given[name]) for name in self._exchange.inputs if name != _NUMBERS}
        return arrays | {_NUMBERS: np.tile(own, self._slices)}

    def _read(self, storage: Storage, shape: tuple[int, ...]) -> NDArray[np.float32]:
        room, offset, _, _ = self._layout.binding(storage, 0, written=False)
        found = np.empty(math.prod(shape), np.float32)
        with sentences():
            self._plan.download(room, offset, found.view(np.uint8))
        return found.reshape(shape)

    def _origin(self, given: Mapping[str, NDArray[Any]]) -> str:
        """Return where a loss that is not finite comes from, by the same forward pass on the cores."""
        threads = usable_cpus()
        pool, tier = thread_pool(threads, SPIN_US), training_tier(FP32)
        kept = {name: values.reshape(-1) for name, values in self.weights().items()}
        arrays = for_plans(given)
        found = (
            origin(
                self._step.forward,
                kept | {name: slice_of(array, number, self._slices) for name, array in arrays.items()},
                tier,
                pool,
            )
            for number in range(self._slices)
        )
        return next((clause for clause in found if clause != FINITE), FINITE)
