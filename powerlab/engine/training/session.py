"""Training a model with the built-in engine: the public face."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.devices import CPU, GPU, check_device, check_gpu_threads
from powerlab.engine.ir.graph import Graph
from powerlab.engine.session import check_threads
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import FP32
from powerlab.engine.training.batches import Batches
from powerlab.engine.training.cores import CoreTrainer
from powerlab.engine.training.optimizers import Optimizer, optimizer_named
from powerlab.engine.training.plans import Repeatable, training_tier
from powerlab.engine.training.slices import sliced_graph
from powerlab.engine.training.step import TrainingStep, training_step
from powerlab.engine.training.together import Alone, Group

if TYPE_CHECKING:
    from powerlab.engine.gpu.training.trainer import GpuTrainer


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
        slices: parts of the batch, along the first axis, that go forward and backward before weights move: at the same
            time on threads of their own where threads and slices can be shared evenly, else one after the other. There
            is memory for the activations of those that run at a time. Batch norms normalise each by itself.
        seed: draws what Dropout drops.
        recompute: whether the backward pass computes activations again instead of keeping them: a step takes longer and
            less memory, and gives the same bits.
        precision: ``fp32``, or ``bf16``: convolutions and gradients of their weights are multiplied in bfloat16 where
            that is faster, with sums in float32; weights, what the optimizer keeps and all else stay in float32.
        group: processes that learn together, each from a batch of its own; None: this one alone. All must make the
            same steps. Batch norms look at a process's own batch, and running statistics are the mean of all.
        device: ``cpu``, or ``gpu``: the GPU that Vulkan's loader knows, in ``fp32`` and by this process alone. There
            threads are no choice, all slices run at the same time, and what is not supported is refused.
        queues: of the GPU, over which the slices are spread; with one they are recorded side by side in it.

    Attributes:
        threads: threads that compute.
        slices: parts of the batch.
        steps_done: steps so far.

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
        precision: str = FP32,
        group: Group | None = None,
        device: str = CPU,
        queues: int = 1,
    ) -> None:
        on_gpu = check_device(device) == GPU
        self.threads = _threads(threads, on_gpu=on_gpu)
        self._optimizer = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        _check_choices(precision, group, queues, on_gpu=on_gpu)
        tier = None if on_gpu else training_tier(precision)
        self._network = graph = sliced_graph(model, shapes, batch_size, slices)
        group = group or Alone()
        self.slices, self.steps_done = slices, 0
        shares, cells = slices * group.size, tier is not None
        step = training_step(graph, loss, self._optimizer, sums=shares, recompute=recompute, whole_cells=cells)
        self._batches = Batches(graph.inputs, step, slices, seed)
        self._trainer: CoreTrainer | GpuTrainer
        if tier is None:
            self._trainer = _on_gpu(graph, step, slices, queues)
            self._tier = "vulkan"
        else:
            self._trainer = CoreTrainer(graph, step, tier, threads=self.threads, slices=slices, group=group)
            self._trainer.check_alike((self.inputs, slices, loss, precision, self._optimizer))
            self._tier = tier.name

    @property
    def tier(self) -> str:
        """Return the instruction set in use; ``vulkan`` on a GPU."""
        return self._tier

    @property
    def lanes(self) -> int:
        """Return how many slices run at the same time."""
        return self._trainer.lanes

    @property
    def part_ns(self) -> dict[str, int]:
        """Return how long the parts of the latest step took in ns: forward, backward, update.

        Of slices, on the cores, all of a lane's together, the mean of lanes. In several processes ``reduce`` stands
        before the update: how long the step waited for gradients to be added up. Empty on a GPU without timestamps.
        """
        return self._trainer.part_ns

    @property
    def activation_bytes(self) -> int:
        """Return the memory for activations, packed weights and scratch."""
        return self._trainer.activation_bytes

    @property
    def planned_bytes(self) -> int:
        """Return the memory for activations, gradients, weights and what the optimizer keeps of them."""
        return self._trainer.planned_bytes

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
        try:
            given = self._batches.given(inputs, labels)
        except PowerlabError:
            self._trainer.sit_out()
            raise
        number = self.steps_done + 1
        loss = self._trainer.learn(given, self._optimizer.numbers(number), number)
        self.steps_done = number
        return loss

    def runs(
        self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]
    ) -> tuple[tuple[Repeatable, Mapping[str, Any]], ...]:
        """Return the plans of a step, for both passes and for the update, each with the memory that it would run on.

        Of a batch in slices, the first one's passes. On a GPU there is one plan of all, without slices.

        Raises:
            PowerlabError: an input or label is missing or does not fit, or there are slices on a GPU.
        """
        given = self._batches.given(inputs, labels)
        return self._trainer.runs(given, self._optimizer.numbers(self.steps_done + 1))

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        return self._trainer.weights()

    def answers(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the model as it is now answers to a batch, in float32: output name -> array.

        That is planned at the first call; on a GPU at the first one after a step.

        Raises:
            PowerlabError: an input is missing or does not fit, or there is not enough memory.
        """
        return self._trainer.answers(self._batches.without_labels(inputs))

    def graph(self) -> Graph:
        """Return the model as it is now, not optimised: to write as ONNX, or for a Session after ``optimise``."""
        return self._network.rewritten(self._network.nodes, constants=self.weights())

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter."""
        return self._trainer.gradients()


def _threads(threads: int | None, *, on_gpu: bool) -> int:
    """Return how many threads compute.

    Raises:
        PowerlabError: that is no number of threads, or a GPU has none to choose.
    """
    if on_gpu:
        check_gpu_threads(threads)
        return 1
    found = usable_cpus() if threads is None else threads
    check_threads(found)
    return found


def _check_choices(precision: str, group: Group | None, queues: int, *, on_gpu: bool) -> None:
    """Raise PowerlabError where a device does not have what is asked for."""
    if not on_gpu and queues != 1:
        raise PowerlabError(f"the cpu has no queues; leave out queues={queues!r}, or ask for the device gpu.")
    if on_gpu and precision != FP32:
        raise PowerlabError(f"on a GPU models are trained in {FP32} alone, not in {precision!r}.")
    if on_gpu and group is not None:
        raise PowerlabError("several processes train together on the cores alone; leave out the device gpu.")


def _on_gpu(network: Graph, step: TrainingStep, slices: int, queues: int) -> GpuTrainer:
    from powerlab.engine.gpu.training.trainer import GpuTrainer

    return GpuTrainer(network, step, slices=slices, queues=queues)
