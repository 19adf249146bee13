"""A network lowered for a GPU: dispatches over storages, whose addresses are not decided yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.ir.constants import Value, value_of
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.arena import Lifetime

WORD_BYTES = 4
"""Storages count floats, whatever a GPU keeps in them."""


class Dispatch(Struct, frozen=True, eq=False):
    """One kernel call.

    Attributes:
        kernel: the file of its shader, without what stands behind the dot.
        label: the node it computes.
        buffers: in the order of the shader's bindings; those it writes come first.
        written: how many those are.
        constants: specialization constants 0, 1, ...; the first is the size of a work group.
        push: its push constants.
        groups: work groups along three axes.
        covered: labels of other nodes that it computes.
    """

    kernel: str
    label: str
    buffers: tuple[Storage, ...]
    written: int
    constants: tuple[int, ...]
    push: bytes
    groups: tuple[int, int, int]
    covered: tuple[str, ...] = ()


class Constant(Struct, frozen=True, eq=False):
    """A value for the GPU's memory, made when it goes there.

    Attributes:
        value: the numbers.
        dtype: what they are stored as.
    """

    value: Value
    dtype: np.dtype[Any]

    @property
    def words(self) -> int:
        """Return the room it takes, whole vectors of four."""
        return words(self.value.size, self.dtype.itemsize)

    def bytes(self) -> NDArray[np.uint8]:
        """Return the numbers as they are stored, those that fill up the last vector being 0.

        Numbers beyond float16 are its largest, as masks' are that stand for minus infinity.
        """
        stored = np.zeros(self.words * WORD_BYTES, np.uint8)
        values = _stored(value_of(self.value).reshape(-1), self.dtype).view(np.uint8)
        stored[: values.size] = values
        return stored


def _stored(value: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(value, dtype)
    if dtype == np.float16 and (beyond := np.isinf(stored) & np.isfinite(value)).any():
        stored[beyond] = np.copysign(np.finfo(dtype).max, value[beyond]).astype(dtype)
    return stored


class Part(Struct, frozen=True):
    """A storage that is part of another one.

    Attributes:
        whole: the other one.
        first: the word of it at which it begins.
        slice: of the batch, whose memory it is in, beside that of the slice that asks.
    """

    whole: Storage
    first: int
    slice: int = 0


class GpuProgram(Struct, frozen=True, eq=False):
    """All of a network's dispatches, in order.

    Attributes:
        dispatches: the kernel calls.
        constants: by the index of their storages.
        inputs: words of each input.
        outputs: words of each output.
        half: whether numbers between kernels and weights are stored in 16 bits.
        picked: inputs that pick along axes -> the size of the smallest of them.
        bounded: inputs of whole numbers -> the largest that a run may give, without its sign.
        parts: number of a storage -> which part of which other one it is; all others have memory of their own.
    """

    dispatches: tuple[Dispatch, ...]
    constants: tuple[Constant, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    half: bool
    picked: Mapping[str, int]
    bounded: Mapping[str, int]
    parts: Mapping[int, Part]


def words(elements: int, element_bytes: int) -> int:
    """Return the words that so many elements take, filled up to whole vectors of four elements."""
    return -(-elements // 4) * 4 * element_bytes // WORD_BYTES


def lifetimes(program: GpuProgram) -> list[Lifetime]:
    """Return the lifetime of every storage of the arena, from the first dispatch that touches it to the last.

    Who touches a part touches the whole.
    """
    found: dict[int, Lifetime] = {}
    for index, dispatch in enumerate(program.dispatches):
        for touched in dispatch.buffers:
            part = program.parts.get(touched.number)
            storage = part.whole if part else touched
            if storage.space is Space.ARENA:
                known = found.get(storage.number)
                found[storage.number] = Lifetime(storage, known.first if known else index, index)
    return list(found.values())
