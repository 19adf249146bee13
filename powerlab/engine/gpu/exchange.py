"""The arrays of a run, as a plan on a GPU takes and gives them: the bytes of each slice, and where they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.layout import Layout
from powerlab.engine.planned import checked_inputs
from powerlab.engine.program.operand import readable
from powerlab.engine.program.storage import Space
from powerlab.engine.runtime.outside_types import to_engine, to_model

Parts = list[tuple[int, NDArray[np.uint8]]]
"""Offset and bytes of every slice of every array."""

Rooms = dict[str, NDArray[np.float32]]
"""Memory for each output."""


class Exchange(Struct, frozen=True, kw_only=True):
    """See the module.

    Attributes:
        inputs: name -> shape of every input, of all slices.
        outputs: name -> shape of every output, of all slices.
        dtypes: name -> numpy type of every input and output, as the model says.
        picked: inputs that pick along axes -> the size of the smallest of them.
        bounded: inputs of whole numbers -> the largest that a run may give, without its sign.
        layout: where everything lies.
        slices: parts the first axis is cut into.
    """

    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, np.dtype[Any]]
    picked: Mapping[str, int]
    bounded: Mapping[str, int]
    layout: Layout
    slices: int

    def given(self, inputs: Mapping[str, Any]) -> Parts:
        """Return what goes in.

        Raises:
            PowerlabError: an input is missing, or has the wrong shape, type or numbers.
        """
        checked = checked_inputs(self.inputs, self.dtypes, inputs)
        return self._parts(Space.INPUT, [self._readable(name, np.asarray(one)) for name, one in checked.items()])

    def room(self) -> Rooms:
        """Return memory for what comes out."""
        return {name: np.empty(math.prod(shape), np.float32) for name, shape in self.outputs.items()}

    def out(self, rooms: Rooms) -> Parts:
        """Return where what comes out goes."""
        return self._parts(Space.OUTPUT, list(rooms.values()))

    def results(self, rooms: Rooms) -> dict[str, NDArray[Any]]:
        """Return what came out, in the model's types."""
        return {name: to_model(room, self.dtypes[name]).reshape(self.outputs[name]) for name, room in rooms.items()}

    def _readable(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return an input as a GPU reads it: floats, or 32-bit places that lie inside what they pick from."""
        size, most = self.picked.get(name), self.bounded.get(name)
        if most is not None and array.size and not -most <= array.min() <= array.max() <= most:
            held = f"{array.min()} to {array.max()}"
            raise PowerlabError(
                f"the input {name!r} holds {held}, and this model on a GPU takes {-most} to {most}; use the cpu."
            )
        if size is None:
            return readable(to_engine(array, np.dtype(np.float32)))
        if array.size and not -size <= array.min() <= array.max() < size:
            raise PowerlabError(f"the input {name!r} picks from {size} rows and holds {array.min()} to {array.max()}.")
        return np.ascontiguousarray(array, np.int32)

    def _parts(self, space: Space, arrays: Sequence[NDArray[Any]]) -> Parts:
        cut = [array.reshape(self.slices, -1) for array in arrays]
        return [
            (offset, array[part].view(np.uint8))
            for part in range(self.slices)
            for offset, array in zip(self.layout.offsets(space, part), cut, strict=True)
        ]
