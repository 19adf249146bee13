"""General tensors of a program: any sizes and strides over a storage, of float32 or of integers.

All ONNX integer types and bool are carried as int64 while a plan runs, which takes the room of two floats an element.
A view of an operand is another operand of the same storage; the methods here are those of strided arrays anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from powerlab.engine.program.storage import Storage

MOST_AXES = 8
"""Of an operand of a kernel; more are fine where neighbours lie so that they count as one."""


class Element(Enum):
    """What the elements of a general tensor are: float32, or int64 as which all integers are carried."""

    FLOAT = "FLOAT"
    INT = "INT"

    @property
    def floats(self) -> int:
        """Return the floats of memory an element takes."""
        return 2 if self is Element.INT else 1

    @property
    def suffix(self) -> str:
        """Return the type in the names of kernels."""
        return "i64" if self is Element.INT else "f32"


def element_of(dtype: np.dtype[Any]) -> Element:
    """Return how tensors of a type are carried."""
    return Element.FLOAT if dtype.kind == "f" else Element.INT


def readable(values: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return values one behind the other, each at an address that its type may have: in a file they lie anywhere."""
    return np.require(np.ascontiguousarray(values, dtype), requirements=["ALIGNED"])


def as_floats(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return integers or bools as a plan carries them: int64, two floats an element, in one row."""
    return readable(values, np.int64).reshape(-1).view(np.float32)


def compact_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of elements that follow on each other, the last axis fastest."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


class Operand(Struct, frozen=True, gc=False):
    """A storage seen as a general tensor; ``strides`` and ``offset`` count elements.

    Attributes:
        storage: where it lies.
        element: what it holds.
        sizes: elements along each axis.
        strides: how far apart they are; 0 repeats one, below 0 goes backwards.
        offset: where the element at index 0 of all axes is.
    """

    storage: Storage
    element: Element
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def shift(self) -> int:
        """Return how far it moves from one image to the next: steps with such operands see all images at once."""
        return 0

    def broadcast(self, sizes: Sequence[int]) -> Operand:
        """Return the operand repeated to larger sizes, by numpy's rules."""
        added = len(sizes) - len(self.sizes)
        strides = (
            *(0,) * added,
            *(
                0 if own == 1 != wanted else stride
                for own, stride, wanted in zip(self.sizes, self.strides, sizes[added:], strict=True)
            ),
        )
        return self._seen(tuple(sizes), strides)

    def _seen(self, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None) -> Operand:
        """Return the same storage through other axes; ``replace`` would take three times as long, and it is often."""
        return Operand(self.storage, self.element, sizes, strides, self.offset if offset is None else offset)

    def permuted(self, order: Sequence[int]) -> Operand:
        """Return the operand with its axes in another order."""
        sizes, strides = (tuple(values[axis] for axis in order) for values in (self.sizes, self.strides))
        return self._seen(sizes, strides)

    def sliced(self, axis: int, start: int, size: int, step: int = 1) -> Operand:
        """Return ``size`` elements of an axis, from ``start`` on, ``step`` apart."""
        sizes, strides = list(self.sizes), list(self.strides)
        offset = self.offset + start * strides[axis]
        sizes[axis], strides[axis] = size, strides[axis] * step
        return self._seen(tuple(sizes), tuple(strides), offset)

    def first(self) -> Operand:
        """Return the first element alone, without axes."""
        return self._seen((), ())

    def reshaped(self, sizes: Sequence[int]) -> Operand | None:
        """Return the operand in another shape, its elements in the same order; None where no strides say that."""
        (whole,) = joined((self,))
        axes = list(zip(whole.sizes, whole.strides, strict=True))
        size, stride, strides = 1, 0, []
        for wanted in sizes:
            if size == 1 < wanted:
                size, stride = axes.pop(0)
            if size % wanted:
                return None
            size //= wanted
            strides.append(stride * size)
        return self._seen(tuple(sizes), tuple(strides))

    def split(self, axis: int, sizes: Sequence[int]) -> Operand:
        """Return the operand with one axis as several, whose sizes have the same product."""
        own = tuple(stride * self.strides[axis] for stride in compact_strides(sizes))
        return self._seen(
            (*self.sizes[:axis], *sizes, *self.sizes[axis + 1 :]),
            (*self.strides[:axis], *own, *self.strides[axis + 1 :]),
        )


def joined(operands: Sequence[Operand]) -> tuple[Operand, ...]:
    """Return operands of the same sizes with axes of 1 left out and neighbours that follow on each other as one.

    At least one axis is left.
    """
    axes: list[tuple[int, tuple[int, ...]]] = []
    for axis, size in enumerate(operands[0].sizes):
        strides = tuple(operand.strides[axis] for operand in operands)
        if size == 1:
            continue
        if axes and axes[-1][1] == tuple(stride * size for stride in strides):
            axes[-1] = (axes[-1][0] * size, strides)
        else:
            axes.append((size, strides))
    axes = axes or [(1, (1,) * len(operands))]
    sizes = tuple(size for size, _ in axes)
    return tuple(
        operand._seen(sizes, tuple(strides[index] for _, strides in axes)) for index, operand in enumerate(operands)
    )
