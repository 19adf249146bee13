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
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.runtime.plan import aligned, thread_pool
from powerlab.engine.session import SPIN_US, check_threads
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import tier_for
from powerlab.engine.training.batches import Batches
from powerlab.engine.training.diagnosis import FINITE, origin
from powerlab.engine.training.optimizers import Optimizer, optimizer_named
from powerlab.engine.training.parts import PARTS, backward_from
from powerlab.engine.training.plans import FLOAT_BYTES, StepPlan
from powerlab.engine.training.slices import slice_of, sliced_graph
from powerlab.engine.training.step import training_step
from powerlab.engine.training.together import Alone, Group, check_alike


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
        recompute: whether the backward pass computes activations again instead of keeping them: a step takes longer and
            less memory, and gives the same bits.
        group: processes that learn together, each from a batch of its own; None: this one alone. All must make the
            same steps. Batch norms look at a process's own batch, and running statistics are the mean of all.

    Attributes:
        threads: threads that compute.
        slices: parts of the batch.
        steps_done: steps so far.
        part_ns: how long the parts of the latest step took in ns: forward, backward, update.
        activation_bytes: memory for activations, packed weights and scratch.
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
        recompute: bool = False,
        group: Group | None = None,
    ) -> None:
        usable = usable_cpus()
        self.threads = usable if threads is None else threads
        check_threads(self.threads)
        self._optimizer = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        graph = sliced_graph(model, shapes, batch_size, slices)
        self.slices, self.steps_done, self._group = slices, 0, group or Alone()
        self._shares = slices * self._group.size
        self._network = graph
        self._step = step = training_step(graph, loss, self._optimizer, sums=self._shares, recompute=recompute)
        self._batches = Batches(graph.inputs, step, slices, seed)
        self._tier = tier_for("fp32")
        self._plan, self._update = (
            StepPlan(one, self._tier, self.threads, in_place=True) for one in (step.graph, step.update.graph)
        )
        infos = {one.before: one.of(step.update.graph, step.graph) for one in (*step.statistics, *step.update.kept)}
        sums = [step.graph.tensors[name] for name in dict.fromkeys(step.gradients.values())]
        floats = sum(info.elements for info in (*infos.values(), *sums * min(slices, 2)))
        self.activation_bytes = self._plan.arena_bytes
        self.planned_bytes = FLOAT_BYTES * floats + self.activation_bytes + self._update.arena_bytes
        check_memory(self.planned_bytes, f"training {graph.name!r}", "its activations, gradients and weights")
        self._pool = thread_pool(self.threads, SPIN_US if self.threads <= usable else 0)
        for plan in (self._plan, self._update):
            plan.build(self._pool)
        self._backward_from = backward_from(self._plan.labels)
        self.part_ns = dict.fromkeys(PARTS, 0)
        self._kept: dict[str, Floats] = {
            one.before: _fresh(infos[one.before], None if one.zero else graph.constants[one.before])
            for one in (*step.statistics, *step.update.kept)
        }
        self._sums = {info.name: _fresh(info, None) for info in sums}
        check_alike(self._group, (self.inputs, slices, loss, self._optimizer), self._kept)
        self._parts = {info.name: _fresh(info, None) for info in sums} if slices > 1 else self._sums

    @property
    def tier(self) -> str:
        """Return the instruction set in use."""
        return self._tier.name

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every input of the model, of the whole batch."""
        return self._batches.inputs

    @property
    def labels_shape(self) -> tuple[int, ...]:
        """Return the shape of the labels or targets of a step; -1 stands for any size."""
        return self._batches.labels_shape

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
        given = self._batches.given(inputs, labels)
        step, self.part_ns = self._step, dict.fromkeys(PARTS, 0)
        before = {one.before: self._kept[one.before].copy() for one in step.statistics}
        loss = self._together(math.fsum(self._learn(given, number) for number in range(self.slices)), given, before)
        self.part_ns["update"] = sum(self._update.run(self._of_update()))
        self.steps_done += 1
        return loss

    def runs(
        self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]
    ) -> tuple[tuple[StepPlan, dict[str, Floats]], ...]:
        """Return the plans of a step, for both passes and for the update, each with the memory that it would run on.

        Of a batch in slices, the first one's passes.

        Raises:
            PowerlabError: an input or label is missing or does not fit.
        """
        given = self._batches.given(inputs, labels)
        return (self._plan, self._of_slice(given, 0, np.empty(1, np.float32))), (self._update, self._of_update())

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
            name: self._sums[output].reshape(self._network.shape(name)) / np.float32(self._shares)
            for name, output in self._step.gradients.items()
        }

    def _learn(self, given: Mapping[str, Floats], number: int) -> float:
        """Go forward and backward over a slice, add its gradients, and return its loss."""
        loss = np.empty(1, np.float32)
        took_ns = self._plan.run(self._of_slice(given, number, loss))
        self.part_ns["forward"] += sum(took_ns[: self._backward_from])
        self.part_ns["backward"] += sum(took_ns[self._backward_from :])
        if number > 0:
            for name, part in self._parts.items():
                self._sums[name] += part
        return float(loss[0])

    def _of_slice(self, given: Mapping[str, Floats], number: int, loss: Floats) -> dict[str, Floats]:
        """Return what a slice's forward and backward pass read and write."""
        written = {one.after: self._kept[one.before] for one in self._step.statistics}
        gradients = self._sums if number == 0 else self._parts
        return {**self._arrays(given, number), **written, **gradients, self._step.graph.outputs[0].name: loss}

    def _of_update(self) -> dict[str, Floats]:
        """Return what an update reads and writes."""
        update, numbers = self._step.update, self._optimizer.numbers(self.steps_done + 1)
        arrays = self._kept | {one.after: self._kept[one.before] for one in update.kept}
        arrays |= {update.gradients[name]: self._sums[output] for name, output in self._step.gradients.items()}
        return arrays | {update.numbers[name]: np.array([value], np.float32) for name, value in numbers.items()}

    def _arrays(self, given: Mapping[str, Floats], number: int) -> dict[str, Floats]:
        """Return what a slice's forward and backward pass read."""
        return self._kept | {name: slice_of(array, number, self.slices) for name, array in given.items()}

    def _together(self, loss: float, given: Mapping[str, Floats], before: Mapping[str, Floats]) -> float:
        """Add up what all processes found, and return the mean loss of all slices of all of them.

        Args:
            loss: the sum over this process's slices.
            given: what the step was given.
            before: running statistics before it.
        """
        total = np.array([loss], np.float32)
        self._group.add_up([total])
        if math.isfinite(total[0]):
            statistics = [self._kept[one.before] for one in self._step.statistics]
            self._group.add_up([*self._sums.values(), *statistics])
            for values in statistics:
                np.divide(values, np.float32(self._group.size), out=values)
            return float(total[0]) / self._shares
        for name, values in before.items():
            self._kept[name][:] = values
        raise PowerlabError(
            f"the loss of step {self.steps_done + 1} is {total[0] / self._shares:g}: {self._origin(loss, given)}; "
            "weights are as before this step: train with a lower learning rate, or look at the data."
        )

    def _origin(self, loss: float, given: Mapping[str, Floats]) -> str:
        """Return where a loss that is not finite comes from."""
        if math.isfinite(loss):
            return "it is finite in this process, and not in another one"
        found = (
            origin(self._step.forward, self._arrays(given, number), self._tier, self._pool)
            for number in range(self.slices)
        )
        return next((clause for clause in found if clause != FINITE), FINITE)


def _fresh(info: TensorInfo, value: NDArray[Any] | None) -> Floats:
    """Return memory of its own for what stays from step to step."""
    values = np.zeros(info.elements, np.float32) if value is None else np.array(value, np.float32).reshape(-1)
    return aligned(values)
