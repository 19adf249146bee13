"""Training a model with the built-in engine: the public face."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.session import SPIN_US, check_threads
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import FP32
from powerlab.engine.training.answers import Answers
from powerlab.engine.training.batches import Batches
from powerlab.engine.training.diagnosis import FINITE, origin
from powerlab.engine.training.lanes import Lanes, lane_count
from powerlab.engine.training.optimizers import Optimizer, optimizer_named
from powerlab.engine.training.parts import BACKWARD, FORWARD, PARTS, PARTS_TOGETHER, REDUCE, UPDATE
from powerlab.engine.training.plans import StepPlan, training_tier
from powerlab.engine.training.slices import sliced_graph
from powerlab.engine.training.state import State
from powerlab.engine.training.step import training_step
from powerlab.engine.training.stretches import stretches
from powerlab.engine.training.together import ELSEWHERE, Alone, Group, check_alike


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

    Attributes:
        threads: threads that compute.
        slices: parts of the batch.
        lanes: how many of them run at the same time.
        steps_done: steps so far.
        part_ns: how long the parts of the latest step took in ns: forward, backward, update; of slices, all of a
            lane's together, the mean of lanes. In several processes ``reduce`` stands before the update: how long the
            step waited for gradients to be added up.
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
        precision: str = FP32,
        group: Group | None = None,
    ) -> None:
        usable = usable_cpus()
        self.threads = usable if threads is None else threads
        check_threads(self.threads)
        self._optimizer = optimizer_named(optimizer) if isinstance(optimizer, str) else optimizer
        self._tier = training_tier(precision)
        graph = sliced_graph(model, shapes, batch_size, slices)
        self.slices, self.steps_done, self._group = slices, 0, group or Alone()
        self._shares = slices * self._group.size
        self._step = step = training_step(graph, loss, self._optimizer, sums=self._shares, recompute=recompute)
        self._batches = Batches(graph.inputs, step, slices, seed)
        self.lanes = lane_count(self.threads, slices, self._group.size)
        each = self.threads // self.lanes
        plan = StepPlan(step.graph, self._tier, each, in_place=True)
        self._update = StepPlan(step.update.graph, self._tier, self.threads, in_place=True)
        self._state = State(graph, step, slices, self.lanes)
        self.activation_bytes = self.lanes * plan.arena_bytes
        self.planned_bytes = self._state.planned_bytes + self.activation_bytes + self._update.arena_bytes
        check_memory(self.planned_bytes, f"training {graph.name!r}", "its activations, gradients and weights")
        spin_us = SPIN_US if self.threads <= usable else 0
        self._pool = thread_pool(self.threads, spin_us)
        self._lanes = Lanes(plan, self.lanes, self._pool, each, spin_us)
        self._update.build(self._pool)
        self._state.build()
        self._stretches = stretches(plan, self._state.gradient_floats, self._group.size)
        self.part_ns = self._no_time()
        self._answers: Answers | None = None
        sent = [one.gradients for one in self._stretches if one.gradients]
        check_alike(self._group, (self.inputs, slices, loss, precision, self._optimizer, sent), self._state.kept)

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
        try:
            given = self._batches.given(inputs, labels)
        except PowerlabError:
            self._sit_out()
            raise
        self.part_ns = self._no_time()
        loss = self._together(self._learn(given), given)
        self.part_ns[UPDATE] = self._update.run_some(self._update.bound(self._of_update()), 0, len(self._update.labels))
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
        passes = self._state.of_slice(given, 0, np.empty(1, np.float32))
        return (self._lanes.plans[0], passes), (self._update, self._of_update())

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        return self._state.weights()

    def answers(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Return what the model as it is now answers to a batch, in float32: output name -> array.

        That is planned at the first call.

        Raises:
            PowerlabError: an input is missing or does not fit, or there is not enough memory.
        """
        given = self._batches.without_labels(inputs)
        if self._answers is None:
            moved = (*self._step.parameters, *(one.before for one in self._step.statistics))
            self._answers = Answers(self._state.network, moved, training_tier(FP32), self._pool)
        found = [self._answers.of(self._state.arrays(given, number)) for number in range(self.slices)]
        return (
            {name: np.concatenate([one[name] for one in found]) for name in found[0]} if self.slices > 1 else found[0]
        )

    def graph(self) -> Graph:
        """Return the model as it is now, not optimised: to write as ONNX, or for a Session after ``optimise``."""
        network = self._state.network
        return network.rewritten(network.nodes, constants=self.weights())

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter."""
        return self._state.gradients(self._shares)

    def _sit_out(self) -> None:
        """Add numbers that are none to all that the others wait for, so that they refuse this step, too."""
        for stretch in self._stretches:
            floats = (self._state.gradient_floats[name] for name in stretch.gradients)
            self._group.begin([np.full(count, np.nan, np.float32) for count in floats])
        self._group.finish()
        self._group.add_up([np.array([np.nan, 1], np.float32)])

    def _no_time(self) -> dict[str, int]:
        return dict.fromkeys(PARTS if self._group.size == 1 else PARTS_TOGETHER, 0)

    def _learn(self, given: Mapping[str, Floats]) -> float:
        """Go forward and backward over all slices, add up what they make, and return the sum of their losses."""
        losses = list[float]()
        for first in range(0, self.slices, self.lanes):
            for loss, took_ns in self._lanes.run(partial(self._pass, given, first)):
                losses.append(loss)
                for part, ns in took_ns.items():
                    self.part_ns[part] += ns // self.lanes
            self._lanes.run(partial(self._add, first))
        return math.fsum(losses)

    def _pass(self, given: Mapping[str, Floats], first: int, lane: int) -> tuple[float, dict[str, int]]:
        """Go forward and backward over the slice ``first + lane``; return its loss, and how long both took in ns.

        Several processes have one lane each: gradients of its last slice go to the others as soon as they are there.
        """
        loss, group, number = np.empty(1, np.float32), self._group, first + lane
        plan, took_ns = self._lanes.plans[lane], dict.fromkeys((FORWARD, BACKWARD), 0)
        arrays = plan.bound(self._state.of_slice(given, number, loss))
        for stretch in self._stretches:
            took_ns[stretch.part] += plan.run_some(arrays, stretch.first, stretch.last)
            if group.size > 1:
                made = self._state.added(stretch.gradients, [number])
                before_ns = time.perf_counter_ns()
                group.begin(made if number == self.slices - 1 else ())
                took_ns[REDUCE] = took_ns.get(REDUCE, 0) + time.perf_counter_ns() - before_ns
        return float(loss[0]), took_ns

    def _add(self, first: int, lane: int) -> None:
        """Add what the slices from ``first`` on made, but what is added already; each lane adds its share of it."""
        made = self._state.made if self._group.size == 1 else self._state.moving
        self._state.added(made[lane :: self.lanes], range(first, first + self.lanes))

    def _of_update(self) -> dict[str, Floats]:
        """Return what an update reads and writes."""
        return self._state.of_update(self._optimizer.numbers(self.steps_done + 1))

    def _together(self, loss: float, given: Mapping[str, Floats]) -> float:
        """Wait for what all processes add up, and return the mean loss of all slices of all of them.

        Args:
            loss: the sum over this process's slices.
            given: what the step was given.
        """
        before_ns, total = time.perf_counter_ns(), np.array([loss, 0], np.float32)
        self._group.finish()
        self._group.add_up([total])
        if self._group.size > 1:
            self.part_ns[REDUCE] += time.perf_counter_ns() - before_ns
        if math.isfinite(total[0]):
            self._state.move_statistics(self._group)
            return float(total[0]) / self._shares
        if total[1]:
            raise PowerlabError(
                f"step {self.steps_done + 1} was made by no process, because {ELSEWHERE} was given a batch that it "
                "refused; weights are as before this step, and the next one may follow."
            )
        raise PowerlabError(
            f"the loss of step {self.steps_done + 1} is {total[0] / self._shares:g}: {self._origin(loss, given)}; "
            "weights are as before this step: train with a lower learning rate, or look at the data."
        )

    def _origin(self, loss: float, given: Mapping[str, Floats]) -> str:
        """Return where a loss that is not finite comes from."""
        if math.isfinite(loss):
            return f"it is finite in this process, and in {ELSEWHERE} it is not"
        found = (
            origin(self._step.forward, self._state.arrays(given, number), self._tier, self._pool)
            for number in range(self.slices)
        )
        return next((clause for clause in found if clause != FINITE), FINITE)
