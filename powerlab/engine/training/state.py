"""What a training keeps in memory: weights, running statistics, what the optimizer keeps of them, and gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.graph import Graph, TensorInfo
from powerlab.engine.program.program import Floats
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.runtime.plan import aligned
from powerlab.engine.training.slices import slice_of
from powerlab.engine.training.step import TrainingStep
from powerlab.engine.training.together import Group


class State:
    """The arrays of a session; :meth:`build` takes their memory.

    Args:
        network: of one slice, with the weights to begin with.
        step: that is trained by.
        slices: parts of the batch.
        lanes: how many of them run at the same time.

    Attributes:
        network: likewise.
        gradient_floats: elements of each gradient that the step's graph gives.
        moving: new running statistics.
        made: what a slice makes and all slices add up: gradients, the largest first, and :attr:`moving`.
        planned_bytes: the memory.
        kept: what stays from step to step, by the names of the step's inputs.
    """

    def __init__(self, network: Graph, step: TrainingStep, slices: int, lanes: int) -> None:
        self.network, self._step, self._slices, self._lanes = network, step, slices, lanes
        moved = (*step.statistics, *step.update.kept)
        self._infos = {one.before: one.of(step.update.graph, step.graph) for one in moved}
        self._zero = {one.before for one in moved if one.zero}
        tensors = step.graph.tensors
        gradients = (tensors[name] for name in dict.fromkeys(step.gradients.values()))
        self.gradient_floats = {info.name: info.elements for info in gradients}
        by_size = sorted(self.gradient_floats, key=lambda name: -self.gradient_floats[name])
        self.moving = tuple(one.after for one in step.statistics)
        self.made = (*by_size, *self.moving)
        self._lanes_apart = range(0 if slices > lanes else 1, lanes)  # the very first slice writes the sums themselves
        kept = sum(info.elements for info in self._infos.values())
        made = sum(tensors[name].elements for name in self.made)
        self.planned_bytes = FLOAT_BYTES * (kept + (1 + len(self._lanes_apart)) * made)
        self.kept: dict[str, Floats] = {}
        self._sums: dict[str, Floats] = {}
        self._parts: dict[int, dict[str, Floats]] = {}

    def build(self) -> None:
        """Take the memory, with the weights that the network has."""
        constants = self.network.constants
        self.kept = {
            name: _fresh(info, None if name in self._zero else constants[name]) for name, info in self._infos.items()
        }
        self._sums = self._to_make()
        self._parts = {lane: self._to_make() for lane in self._lanes_apart}

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, and of running statistics, by its name in the model."""
        names = (*self._step.parameters, *(one.before for one in self._step.statistics))
        return {name: self.kept[name].reshape(self.network.shape(name)).copy() for name in names}

    def gradients(self, shares: int) -> dict[str, NDArray[np.float32]]:
        """Return copies of the gradients of the latest step by parameter; they are sums of so many."""
        return {
            name: self._sums[output].reshape(self.network.shape(name)) / np.float32(shares)
            for name, output in self._step.gradients.items()
        }

    def arrays(self, given: Mapping[str, Floats], number: int) -> dict[str, Floats]:
        """Return what a slice's forward and backward pass read."""
        return self.kept | {name: slice_of(array, number, self._slices) for name, array in given.items()}

    def of_slice(self, given: Mapping[str, Floats], number: int, loss: Floats) -> dict[str, Floats]:
        """Return what a slice's forward and backward pass read and write, in the lane that its number says."""
        made = self._sums if number == 0 else self._parts[number % self._lanes]
        return {**self.arrays(given, number), **made, self._step.graph.outputs[0].name: loss}

    def added(self, names: Sequence[str], numbers: Sequence[int]) -> list[Floats]:
        """Add what slices made to what those before them did, in their order, and return the sums."""
        for name in names:
            for number in numbers:
                if number > 0:
                    self._sums[name] += self._parts[number % self._lanes][name]
        return [self._sums[name] for name in names]

    def of_update(self, numbers: Mapping[str, float]) -> dict[str, Floats]:
        """Return what an update reads and writes; ``numbers`` are the optimizer's for this step."""
        update = self._step.update
        arrays = self.kept | {one.after: self.kept[one.before] for one in update.kept}
        arrays |= {update.gradients[name]: self._sums[output] for name, output in self._step.gradients.items()}
        return arrays | {update.numbers[name]: np.array([value], np.float32) for name, value in numbers.items()}

    def move_statistics(self, group: Group) -> None:
        """Let running statistics be the mean of what all slices of all processes made of them."""
        sums = [self._sums[one.after] for one in self._step.statistics]
        group.begin(sums)
        group.finish()
        for one, total in zip(self._step.statistics, sums, strict=True):
            np.divide(total, np.float32(self._slices * group.size), out=self.kept[one.before])

    def _to_make(self) -> dict[str, Floats]:
        return {name: _fresh(self._step.graph.tensors[name], None) for name in self.made}


def _fresh(info: TensorInfo, value: NDArray[Any] | None) -> Floats:
    """Return memory of its own for what stays from step to step."""
    values = np.zeros(info.elements, np.float32) if value is None else np.array(value, np.float32).reshape(-1)
    return aligned(values)
