"""Steps of training on this machine's cores: slices in lanes of threads, one process or several."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.runtime.plan import thread_pool
from powerlab.engine.session import SPIN_US
from powerlab.engine.target.cpus import usable_cpus
from powerlab.engine.target.tiers import FP32, Tier
from powerlab.engine.training.answers import Answers
from powerlab.engine.training.batches import for_plans
from powerlab.engine.training.diagnosis import FINITE, not_finite, origin
from powerlab.engine.training.lanes import Lanes, lane_count
from powerlab.engine.training.parts import BACKWARD, FORWARD, PARTS, PARTS_TOGETHER, REDUCE, UPDATE
from powerlab.engine.training.plans import Repeatable, StepPlan, training_tier
from powerlab.engine.training.state import State
from powerlab.engine.training.step import TrainingStep
from powerlab.engine.training.stretches import stretches
from powerlab.engine.training.together import ELSEWHERE, Group, check_alike


class CoreTrainer:
    """See the module.

    Args:
        network: of one slice, with the weights to begin with.
        step: that it is trained by.
        tier: the kernels to use.
        threads: threads that compute.
        slices: parts of the batch.
        group: processes that learn together.

    Attributes:
        lanes: how many slices run at the same time.
        part_ns: how long the parts of the latest step took in ns.
        activation_bytes: memory for activations, packed weights and scratch.
        planned_bytes: memory for activations, gradients, weights and what the optimizer keeps of them.

    Raises:
        PowerlabError: the engine cannot compute what the step holds, or there is not enough memory.
    """

    def __init__(
        self, network: Graph, step: TrainingStep, tier: Tier, *, threads: int, slices: int, group: Group
    ) -> None:
        self._slices, self._group, self._shares = slices, group, slices * group.size
        self._step, self._tier, self._network = step, tier, network
        self.lanes = lane_count(threads, slices, group.size)
        each = threads // self.lanes
        plan = StepPlan(step.graph, tier, each, in_place=True)
        self._update = StepPlan(step.update.graph, tier, threads, in_place=True)
        self._state = State(network, step, slices, self.lanes)
        self.activation_bytes = self.lanes * plan.arena_bytes
        self.planned_bytes = self._state.planned_bytes + self.activation_bytes + self._update.arena_bytes
        check_memory(self.planned_bytes, f"training {network.name!r}", "its activations, gradients and weights")
        spin_us = SPIN_US if threads <= usable_cpus() else 0
        self._pool = thread_pool(threads, spin_us)
        self._lanes = Lanes(plan, self.lanes, self._pool, each, spin_us)
        self._update.build(self._pool)
        self._state.build()
        self._stretches = stretches(plan, self._state.gradient_floats, group.size)
        self.part_ns = self._no_time()
        self._answers: Answers | None = None

    def check_alike(self, settings: tuple[object, ...]) -> None:
        """Raise PowerlabError where processes that learn together have other settings or weights."""
        sent = [one.gradients for one in self._stretches if one.gradients]
        check_alike(self._group, (*settings, sent), self._state.kept)

    def learn(self, given: Mapping[str, NDArray[Any]], numbers: Mapping[str, float], number: int) -> float:
        """Make one step, and return its loss before the weights moved.

        Args:
            given: everything that it is given for the whole batch, by the names of the step's graph.
            numbers: the optimizer's.
            number: of the step, from 1 on.

        Raises:
            PowerlabError: the loss is not finite; weights are as before.
        """
        arrays = for_plans(given)
        self.part_ns = self._no_time()
        loss = self._together(self._passes(arrays), arrays, number)
        bound = self._update.bound(self._state.of_update(numbers))
        self.part_ns[UPDATE] = self._update.run_some(bound, 0, len(self._update.labels))
        return loss

    def sit_out(self) -> None:
        """Add numbers that are none to all that the others wait for, so that they refuse this step, too."""
        for stretch in self._stretches:
            floats = (self._state.gradient_floats[name] for name in stretch.gradients)
            self._group.begin([np.full(count, np.nan, np.float32) for count in floats])
        self._group.finish()
        self._group.add_up([np.array([np.nan, 1], np.float32)])

    def runs(
        self, given: Mapping[str, NDArray[Any]], numbers: Mapping[str, float]
    ) -> tuple[tuple[Repeatable, Mapping[str, Any]], ...]:
        """See :meth:`powerlab.engine.training.TrainingSession.runs`."""
        passes = self._state.of_slice(for_plans(given), 0, np.empty(1, np.float32))
        return (self._lanes.plans[0], passes), (self._update, self._state.of_update(numbers))

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        return self._state.weights()

    def gradients(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter."""
        return self._state.gradients(self._shares)

    def answers(self, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
        """Return what the model as it is now answers to a batch."""
        arrays = for_plans(given)
        if self._answers is None:
            moved = (*self._step.parameters, *(one.before for one in self._step.statistics))
            self._answers = Answers(self._network, moved, training_tier(FP32), self._pool)
        found = [self._answers.of(self._state.arrays(arrays, number)) for number in range(self._slices)]
        return (
            {name: np.concatenate([one[name] for one in found]) for name in found[0]} if self._slices > 1 else found[0]
        )

    def _no_time(self) -> dict[str, int]:
        return dict.fromkeys(PARTS if self._group.size == 1 else PARTS_TOGETHER, 0)

    def _passes(self, given: Mapping[str, Floats]) -> float:
        """Go forward and backward over all slices, add up what they make, and return the sum of their losses."""
        losses = list[float]()
        for first in range(0, self._slices, self.lanes):
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
                group.begin(made if number == self._slices - 1 else ())
                took_ns[REDUCE] = took_ns.get(REDUCE, 0) + time.perf_counter_ns() - before_ns
        return float(loss[0]), took_ns

    def _add(self, first: int, lane: int) -> None:
        """Add what the slices from ``first`` on made, but what is added already; each lane adds its share of it."""
        made = self._state.made if self._group.size == 1 else self._state.moving
        self._state.added(made[lane :: self.lanes], range(first, first + self.lanes))

    def _together(self, loss: float, given: Mapping[str, Floats], number: int) -> float:
        """Wait for what all processes add up, and return the mean loss of all slices of all of them.

        Args:
            loss: the sum over this process's slices.
            given: what the step was given.
            number: of the step.
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
                f"step {number} was made by no process, because {ELSEWHERE} was given a batch that it "
                "refused; weights are as before this step, and the next one may follow."
            )
        raise not_finite(number, float(total[0]) / self._shares, self._origin(loss, given))

    def _origin(self, loss: float, given: Mapping[str, Floats]) -> str:
        """Return where a loss that is not finite comes from."""
        if math.isfinite(loss):
            return f"it is finite in this process, and in {ELSEWHERE} it is not"
        found = (
            origin(self._step.forward, self._state.arrays(given, number), self._tier, self._pool)
            for number in range(self._slices)
        )
        return next((clause for clause in found if clause != FINITE), FINITE)
