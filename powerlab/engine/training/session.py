"""Training a model with the built-in engine: the public face."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, TensorInfo
from powerlab.engine.planned import checked_inputs
from powerlab.engine.program.operand import Element, as_floats, element_of, readable
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.runtime.plan import aligned, thread_pool
from powerlab.engine.session import SPIN_US, check_threads
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import tier_for
from powerlab.engine.training.diagnosis import origin
from powerlab.engine.training.optimizers import Optimizer, optimizer_named
from powerlab.engine.training.plans import FLOAT_BYTES, StepPlan
from powerlab.engine.training.slices import slice_of, sliced_graph
from powerlab.engine.training.step import training_step


class TrainingSession:
    """A model in training, planned for one batch size, with threads of its own.

    Weights begin as the model has them. Results are the same bits on any number of threads.

    Args:
        model: the path of an ONNX file, the name of a model of the zoo, or a graph as it was loaded, for one slice.
        loss: ``softmax_cross_entropy`` for labels (batch,), ``mse`` for targets of the output's shape, or ``yolov3``
            for boxes. A softmax at the end of a model belongs to the first one.
        optimizer: a name (``sgd``, ``momentum``, ``nesterov``, ``adam``, ``adamw``) or one with settings of its own.
        batch_size: size of the first axis of every input; None: as the model says.
        threads: threads that compute, the caller being one; None: as many as there are processors to use.
        shapes: input name -> shape, where another one is wanted than the model says.
        slices: parts of the batch, along the first axis, that go forward and backward one after the other before
            weights move: so there is memory for the activations of one. Batch norms normalise each by itself.
        seed: draws what Dropout drops.

    Attributes:
        threads: threads that compute.
        slices: parts of the batch.
        steps_done: steps so far.
        planned_bytes: memory for activations, gradients, weights and what the optimizer keeps of them.

    Raises:
        PowerlabError: the model cannot be read or trained, or there is not enough memory; one sentence.
    """

    def __init__(
        self,
        model: str | Path | Graph,
        loss: str = "softmax_cross_entropy",
        optimizer: str | Optimizer = "sgd",
        *,
        batch_size: int | None = None,
        threads: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        slices: int = 1,
        seed: int = 0,
    ) -> None:
        usable = usable_cpus()
        self.threads = usable if threads is None else threads
        check_threads(self.threads)
        self._optimizer = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        graph = sliced_graph(model, shapes, batch_size, slices)
        self.slices, self.steps_done = slices, 0
        self._network, self._random = graph, np.random.Generator(np.random.PCG64(seed))
        self._data = graph.inputs
        self._step = step = training_step(graph, loss, self._optimizer, slices=slices)
        self._tier = tier_for("fp32")
        self._plan, self._update = (StepPlan(one, self._tier, self.threads) for one in (step.graph, step.update.graph))
        infos = {one.before: one.of(step.update.graph, step.graph) for one in (*step.statistics, *step.update.kept)}
        sums = [step.graph.tensors[name] for name in dict.fromkeys(step.gradients.values())]
        floats = sum(info.elements for info in (*infos.values(), *sums * min(slices, 2)))
        self.planned_bytes = FLOAT_BYTES * floats + self._plan.arena_bytes + self._update.arena_bytes
        check_memory(self.planned_bytes, f"training {graph.name!r}", "its activations, gradients and weights")
        self._pool = thread_pool(self.threads, SPIN_US if self.threads <= usable else 0)
        for plan in (self._plan, self._update):
            plan.build(self._pool)
        self._kept: dict[str, Floats] = {
            one.before: _fresh(infos[one.before], None if one.zero else graph.constants[one.before])
            for one in (*step.statistics, *step.update.kept)
        }
        self._sums = {info.name: _fresh(info, None) for info in sums}
        self._parts = {info.name: _fresh(info, None) for info in sums} if slices > 1 else self._sums

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every input of the model, of the whole batch."""
        return {info.name: self._whole(info.shape) for info in self._data}

    @property
    def labels_shape(self) -> tuple[int, ...]:
        """Return the shape of the labels or targets of a step; -1 stands for any size."""
        return self._whole(self._step.target.shape)

    def step(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]) -> float:
        """Train on one batch, and return its loss before the weights moved.

        Args:
            inputs: name -> array; or the array alone, where the model has one input.
            labels: int64 (batch,) for softmax cross entropy; float32 of the output's shape for the squared error;
                float32 (batch, boxes, 5) for ``yolov3``: class, centre and size of each box in parts of the image's
                width and height; a class of -1 fills up.

        Raises:
            PowerlabError: an input or label is missing or does not fit, or the loss is not finite, which names the
                first layer whose output is not; weights stay as they were before the step.
        """
        given = self._given(inputs, labels)
        step = self._step
        before = {one.before: self._kept[one.before].copy() for one in step.statistics}
        losses = [self._learn(given, number, before) for number in range(self.slices)]
        numbers = self._optimizer.numbers(self.steps_done + 1)
        arrays = self._kept | {one.after: self._kept[one.before] for one in step.update.kept}
        arrays |= {step.update.gradients[name]: self._sums[output] for name, output in step.gradients.items()}
        arrays |= {step.update.numbers[name]: np.array([value], np.float32) for name, value in numbers.items()}
        self._update.run(arrays)
        self.steps_done += 1
        return sum(losses) / self.slices

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        names = (*self._step.parameters, *(one.before for one in self._step.statistics))
        return {name: self._kept[name].reshape(self._network.shape(name)).copy() for name in names}

    def graph(self) -> Graph:
        """Return the model as it is now, not optimised: to write as ONNX, or for a Session after ``optimise``."""
        return self._network.rewritten(self._network.nodes, constants=self.weights())

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter."""
        return {
            name: self._sums[output].reshape(self._network.shape(name)) / np.float32(self.slices)
            for name, output in self._step.gradients.items()
        }

    def _learn(self, given: Mapping[str, Floats], number: int, before: Mapping[str, Floats]) -> float:
        """Go forward and backward over a slice, add its gradients, and return its loss."""
        step, loss = self._step, np.empty(1, np.float32)
        gradients = self._sums if number == 0 else self._parts
        arrays = self._kept | {name: slice_of(array, number, self.slices) for name, array in given.items()}
        written = {one.after: self._kept[one.before] for one in step.statistics}
        self._plan.run({**arrays, **written, **gradients, step.graph.outputs[0].name: loss})
        if not math.isfinite(loss[0]):
            for name, values in before.items():
                self._kept[name][:] = values
            raise PowerlabError(
                f"the loss of step {self.steps_done + 1} is {loss[0]:g}: "
                f"{origin(step.forward, arrays, self._tier, self._pool)}; weights are as before this step: train with "
                "a lower learning rate, or look at the data."
            )
        if number > 0:
            for name, part in gradients.items():
                self._sums[name] += part
        return float(loss[0])

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of what is given for all slices from that of one."""
        return shape if self.slices == 1 else (shape[0] * self.slices, *shape[1:])

    def _given(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]) -> dict[str, Floats]:
        """Return everything that a step is given for the whole batch, as a plan wants it, by the graph's names."""
        target, tensors = self._step.target, self._step.graph.tensors
        named = dict(inputs) if isinstance(inputs, Mapping) else {self._data[0].name: inputs}
        shapes = self.inputs | {target.name: self._whole(target.shape)}
        dtypes = {info.name: info.dtype for info in self._data} | {target.name: target.dtype}
        arrays = checked_inputs(shapes, dtypes, {**named, target.name: labels})
        arrays |= target.prepare(arrays.pop(target.name))
        given = {
            name: as_floats(array) if element_of(array.dtype) is Element.INT else readable(array)
            for name, array in arrays.items()
        }
        for mask in self._step.masks:
            kept = self._random.random(self.slices * tensors[mask.input].elements, np.float32) >= mask.ratio
            given[mask.input] = kept.astype(np.float32) / np.float32(1 - mask.ratio)
        return given


def _fresh(info: TensorInfo, value: NDArray[Any] | None) -> Floats:
    """Return memory of its own for what stays from step to step."""
    values = np.zeros(info.elements, np.float32) if value is None else np.array(value, np.float32).reshape(-1)
    return aligned(values)
