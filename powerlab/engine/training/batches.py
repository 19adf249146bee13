"""What a step is given, checked: the model's inputs, labels, and what Dropout drops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.graph import TensorInfo
from powerlab.engine.planned import checked_inputs
from powerlab.engine.program.operand import Element, as_floats, element_of, readable
from powerlab.engine.program.program import Floats
from powerlab.engine.training.step import TrainingStep


class Batches:
    """Takes the batches of a session.

    Args:
        data: inputs of the model, of one slice.
        step: what they are for.
        slices: parts of the batch.
        seed: draws what Dropout drops.
    """

    def __init__(self, data: tuple[TensorInfo, ...], step: TrainingStep, slices: int, seed: int) -> None:
        self._data, self._step, self._slices = data, step, slices
        self._random = np.random.Generator(np.random.PCG64(seed))

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of every input of the model, of the whole batch."""
        return {info.name: self._whole(info.shape) for info in self._data}

    @property
    def labels_shape(self) -> tuple[int, ...]:
        """Return the shape of the labels; -1 stands for any size."""
        return self._whole(self._step.target.shape)

    def given(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any], labels: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return everything that a step is given for the whole batch, by the graph's names.

        Raises:
            PowerlabError: an input or label is missing or does not fit.
        """
        target = self._step.target
        dtypes = self._dtypes | {target.name: target.dtype}
        shapes = self.inputs | {target.name: self.labels_shape}
        arrays = checked_inputs(shapes, dtypes, {**self._named(inputs), target.name: labels})
        prepared = target.prepare(arrays.pop(target.name))
        given = {**arrays, **prepared}
        for mask in self._step.masks:
            shape = self._whole(self._step.graph.tensors[mask.input].shape)
            kept = self._random.random(shape, np.float32) >= mask.ratio
            given[mask.input] = kept.astype(np.float32) / np.float32(1 - mask.ratio)
        return given

    def without_labels(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return the inputs of the whole batch alone; raises as :meth:`given` does."""
        return checked_inputs(self.inputs, self._dtypes, self._named(inputs))

    @property
    def _dtypes(self) -> dict[str, np.dtype[Any]]:
        return {info.name: info.dtype for info in self._data}

    def _named(self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any]) -> dict[str, NDArray[Any]]:
        return dict(inputs) if isinstance(inputs, Mapping) else {self._data[0].name: inputs}

    def _whole(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of what is given for all slices from that of one."""
        return shape if self._slices == 1 else (shape[0] * self._slices, *shape[1:])


def for_plans(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return arrays as the plans of the cores read them."""
    return {
        name: as_floats(array) if element_of(array.dtype) is Element.INT else readable(array)
        for name, array in arrays.items()
    }
