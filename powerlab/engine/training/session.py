"""Training a model with the built-in engine: the public face."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, TensorInfo
from powerlab.engine.passes import optimise
from powerlab.engine.planned import checked_inputs
from powerlab.engine.prepared.prepared import memory_errors, prepare
from powerlab.engine.program.operand import Element, as_floats, element_of, readable
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.arena import lay_out
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.runtime.plan import aligned, build_plan, thread_pool
from powerlab.engine.session import SPIN_US, check_threads
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import tier_for
from powerlab.engine.training.optimizers import Optimizer, optimizer_named
from powerlab.engine.training.step import training_step

_FLOAT_BYTES = 4


class TrainingSession:
    """A model in training, planned for one batch size, with threads of its own.

    Weights begin as the model has them. Results are the same bits on any number of threads.

    Args:
        model: the path of an ONNX file, the name of a model of the zoo, or a graph as it was loaded.
        loss: ``softmax_cross_entropy`` for labels (batch,), or ``mse`` for targets of the output's shape. A softmax at
            the end of a model belongs to the former loss.
        optimizer: a name (``sgd``, ``momentum``, ``nesterov``, ``adam``, ``adamw``) or one with settings of its own.
        batch_size: size of the first axis of every input; None: as the model says.
        threads: threads that compute, the caller being one; None: as many as there are processors to use.
        shapes: input name -> shape, where another one is wanted than the model says.
        keep_gradients: whether :meth:`gradients` gives those of the latest step, which costs their memory.
        seed: draws what Dropout drops.

    Attributes:
        threads: threads that compute.
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
        keep_gradients: bool = False,
        seed: int = 0,
    ) -> None:
        usable = usable_cpus()
        self.threads = usable if threads is None else threads
        check_threads(self.threads)
        self._optimizer = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        graph = model if isinstance(model, Graph) else load_graph(model, shapes, batch_size)
        self.steps_done = 0
        self._network, self._random = graph, np.random.Generator(np.random.PCG64(seed))
        self._data = graph.inputs
        self._step = training_step(graph, loss, self._optimizer, give_gradients=keep_gradients)
        tier = tier_for("fp32")
        lowered = optimise(self._step.graph, chained=False)
        prepared = prepare(lowered, tier, self.threads)
        kept = {one.before: self._step.graph.tensors[one.before] for one in self._step.kept}
        state_floats = sum(info.elements for info in kept.values())
        arena = lay_out(prepared.program.steps)
        self.planned_bytes = _FLOAT_BYTES * (state_floats + arena.floats)
        check_memory(self.planned_bytes, f"training {graph.name!r}", "its activations, gradients and weights")
        with memory_errors(graph.name):
            self._plan = build_plan(
                prepared.program, tier, thread_pool(self.threads, SPIN_US if self.threads <= usable else 0)
            )
        self._kept: dict[str, Floats] = {
            one.before: _fresh(kept[one.before], None if one.zero else graph.constants[one.before])
            for one in self._step.kept
        }
        self._inputs, self._outputs = lowered.inputs, lowered.outputs
        self._hidden = list(prepared.program.hidden_inputs)
        self._gradients: dict[str, Floats] = {}

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every input of the model."""
        return {info.name: info.shape for info in self._data}

    @property
    def labels_shape(self) -> tuple[int, ...]:
        """Return the shape of the labels or targets of a step."""
        return self._step.graph.shape(self._step.target.input)

    def step(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]) -> float:
        """Train on one batch, and return its loss before the weights moved.

        Args:
            inputs: name -> array; or the array alone, where the model has one input.
            labels: int64 (batch,) for softmax cross entropy; float32 of the output's shape for the squared error.

        Raises:
            PowerlabError: an input or label is missing or does not fit, or the loss is not a number any more; weights
                stay as they were before the step, except in the latter case.
        """
        given = self._given(inputs, labels)
        loss = np.empty(1, np.float32)
        made = {self._outputs[0].name: loss}
        made |= {one.after: self._kept[one.before] for one in self._step.kept}
        for name in self._step.gradients.values():
            made.setdefault(name, np.empty(self._step.graph.tensors[name].elements, np.float32))
        arrays = [self._kept[info.name] if info.name in self._kept else given[info.name] for info in self._inputs]
        try:
            self._plan.run([*arrays, *self._hidden], [made[info.name] for info in self._outputs])
        except RuntimeError as error:
            raise PowerlabError(str(error)) from error
        self.steps_done += 1
        self._gradients = {name: made[output] for name, output in self._step.gradients.items()}
        if not math.isfinite(loss[0]):
            raise PowerlabError(
                f"the loss of step {self.steps_done} is {loss[0]:g}; train with a lower learning rate, or look for "
                "numbers in the data that are none."
            )
        return float(loss[0])

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        names = (*self._step.parameters, *self._step.statistics)
        return {name: self._shaped(name, self._kept[name]) for name in names}

    def graph(self) -> Graph:
        """Return the model as it is now, not optimised: to write as ONNX, or for a Session after ``optimise``."""
        return self._network.rewritten(self._network.nodes, constants=self.weights())

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return the gradients of the latest step by parameter; empty unless they were asked for."""
        return {name: self._shaped(name, values) for name, values in self._gradients.items()}

    def _shaped(self, name: str, values: Floats) -> NDArray[np.float32]:
        return values.reshape(self._step.graph.shape(name)).copy()

    def _given(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]) -> dict[str, Floats]:
        """Return everything a step is given, as a plan wants it, by the graph's names."""
        target = self._step.target
        named = dict(inputs) if isinstance(inputs, Mapping) else {self._data[0].name: inputs}
        infos = [*self._data, self._step.graph.tensors[target.input]]
        shapes = {info.name: info.shape for info in infos}
        dtypes = {info.name: info.dtype for info in infos}
        arrays = checked_inputs(shapes, dtypes, {**named, target.input: labels})
        target.check(arrays[target.input])
        given = {
            name: as_floats(array) if element_of(dtypes[name]) is Element.INT else readable(array)
            for name, array in arrays.items()
        }
        for name, number in self._optimizer.numbers(self.steps_done + 1).items():
            given[self._step.numbers[name]] = np.array([number], np.float32)
        for mask in self._step.masks:
            kept = self._random.random(self._step.graph.tensors[mask.input].elements, np.float32) >= mask.ratio
            given[mask.input] = kept.astype(np.float32) / np.float32(1 - mask.ratio)
        return given


def _fresh(info: TensorInfo, value: NDArray[Any] | None) -> Floats:
    """Return memory of its own for what stays from step to step."""
    values = np.zeros(info.elements, np.float32) if value is None else np.array(value, np.float32).reshape(-1)
    return aligned(values)
