"""Collects the dispatches of a network, and hands out the memory that they read and write."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.choice.method import Chooser, Numbers
from powerlab.engine.gpu.program import Constant, Dispatch, Part, words
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Space, Storage

LANES = 64
"""Invocations of a work group, where nothing asks for another size."""

MOST_GROUPS = 65535
"""Along one axis, on any device."""


@dataclass(slots=True, kw_only=True)
class Recorder:
    """See the module.

    Attributes:
        target: what is recorded for.
        half: whether numbers are stored in 16 bits.
        choose: says how each convolution is computed.
        dispatches: those so far, in order.
        constants: by the index of their storages.
        parts: number of a storage -> which part of which other one it is.
    """

    target: Target
    half: bool
    choose: Chooser
    dispatches: list[Dispatch] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    parts: dict[int, Part] = field(default_factory=dict)
    _storages: int = 0

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Return what numbers are stored as."""
        return np.dtype(np.float16 if self.half else np.float32)

    @property
    def numbers(self) -> Numbers:
        """Return what convolutions multiply that are not of bytes."""
        return Numbers.FP16 if self.half else Numbers.FP32

    def storage(self, space: Space, index: int, floats: int) -> Storage:
        """Return memory of any kind; ``index``: which input, output or constant."""
        self._storages += 1
        return Storage(self._storages, space, index, floats)

    def room(self, elements: int, element_bytes: int | None = None) -> Storage:
        """Return memory of the arena for so many elements."""
        return self.storage(Space.ARENA, 0, words(elements, element_bytes or self.dtype.itemsize))

    def part(self, storage: Storage, first: int, elements: int) -> Storage:
        """Return so many elements of the arena's storage, from its element ``first`` on."""
        own = self.room(elements)
        before = words(first, self.dtype.itemsize)
        known = self.parts.get(storage.number, Part(storage, 0))
        self.parts[own.number] = Part(known.whole, known.first + before)
        return own

    def of_slice(self, storage: Storage, number: int) -> Storage:
        """Return a storage of the arena as a later slice of the batch has it, for what is there once for all slices."""
        own = self.storage(Space.ARENA, 0, storage.floats)
        known = self.parts.get(storage.number, Part(storage, 0))
        self.parts[own.number] = replace(known, slice=number)
        return own

    def constant(self, value: Value, *, floats: bool = False, integers: bool = False) -> Storage:
        """Return a constant's storage; ``floats``, ``integers``: in 32 bits whatever others are stored in."""
        dtype = np.dtype(np.int32) if integers else np.dtype(np.float32) if floats else self.dtype
        constant = Constant(value, dtype)
        self.constants.append(constant)
        return self.storage(Space.CONSTANT, len(self.constants) - 1, constant.words)

    def emit_flat(
        self,
        kernel: str,
        label: str | Node,
        buffers: Sequence[Storage],
        count: int,
        *,
        constants: Sequence[int] = (),
        push: Sequence[float] = (),
        written: int = 1,
    ) -> None:
        """Append a dispatch of ``count`` invocations, each of which knows its number."""
        groups = -(-count // LANES)
        across = min(groups, MOST_GROUPS)
        shape = (across, -(-groups // across), 1)
        self.emit(kernel, label, buffers, constants=(LANES, *constants), push=push, groups=shape, written=written)

    def emit(
        self,
        kernel: str,
        label: str | Node,
        buffers: Sequence[Storage],
        *,
        constants: Sequence[int],
        push: Sequence[float],
        groups: tuple[int, int, int],
        written: int = 1,
        covered: Sequence[Node] = (),
    ) -> None:
        """Append a dispatch, which computes ``covered`` nodes, too.

        Integers and floats of ``push`` are packed as what they are.

        Raises:
            PowerlabError: the device cannot do so much at once.
        """
        name = label if isinstance(label, str) else label_of(label)
        largest = max(4 * buffer.floats for buffer in buffers)
        if largest > self.target.largest_bytes or max(groups) > MOST_GROUPS:
            raise PowerlabError(
                f"{name} needs {largest / 2**20:.0f} MiB in one piece, or too many work groups, for this GPU, whose "
                f"kernels see {self.target.largest_bytes / 2**20:.0f} MiB at once; use a smaller batch or model."
            )
        packed = struct.pack("".join("f" if isinstance(one, float) else "i" for one in push), *push)
        self.dispatches.append(
            Dispatch(
                kernel, name, tuple(buffers), written, tuple(constants), packed, groups, tuple(map(label_of, covered))
            )
        )


def label_of(node: Node) -> str:
    """Return the words by which a node's dispatches are known."""
    return node.name or node.outputs[0]
