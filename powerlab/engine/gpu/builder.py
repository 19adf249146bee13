"""Collects a network's dispatches, and knows where each tensor lies and how.

A tensor lies in **rows**, one number after another, or in **blocks**: [image][block of 4 channels][pixel], 4 channels a
vector, the last block filled up with finite numbers. Whoever needs the other form gets it by a dispatch, once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.program import Constant, Dispatch, GpuProgram, words
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.operand import Element, Operand, compact_strides
from powerlab.engine.program.storage import Space, Storage

LANES = 64
"""Invocations of a work group, where nothing asks for another size."""

_MOST_GROUPS = 65535
"""Along one axis, on any device."""


@dataclass(frozen=True, slots=True)
class Image:
    """A shape as images in blocks see it."""

    images: int
    channels: int
    height: int
    width: int

    @property
    def blocks(self) -> int:
        """Return the blocks of 4 channels."""
        return -(-self.channels // 4)

    @property
    def pixels(self) -> int:
        """Return the pixels of an image."""
        return self.height * self.width

    @property
    def vectors(self) -> int:
        """Return the vectors of all images."""
        return self.images * self.blocks * self.pixels

    @property
    def is_rows(self) -> bool:
        """Tell whether blocks lie as rows do."""
        return self.pixels == 1 and self.channels % 4 == 0


def image_of(shape: Sequence[int]) -> Image:
    """Return a shape as images; a vector is one image, and axes between channels and columns become rows."""
    if len(shape) < 2:
        return Image(1, math.prod(shape), 1, 1)
    images, channels, *rest = shape
    return Image(images, channels, math.prod(rest[:-1]), rest[-1] if rest else 1)


@dataclass(slots=True)
class _Places:
    """Where a tensor lies; None where it does not lie in this form."""

    rows: Storage | None = None
    blocks: Storage | None = None


@dataclass(slots=True)
class Builder:
    """See the module.

    Attributes:
        graph: the optimised graph.
        half: whether numbers are stored in 16 bits.
        largest_bytes: of what a kernel sees at once.
        broadcasts: whether lanes load weights for each other; a processor that stands in for a GPU needs that.
    """

    graph: Graph
    half: bool
    largest_bytes: int
    broadcasts: bool = False
    _dispatches: list[Dispatch] = field(default_factory=list)
    _constants: list[Constant] = field(default_factory=list)
    _places: dict[str, _Places] = field(default_factory=dict)
    _storages: int = 0

    def __post_init__(self) -> None:
        for info in self.graph.inputs:
            self._places[info.name] = _Places()

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Return what numbers are stored as."""
        return np.dtype(np.float16 if self.half else np.float32)

    def _storage(self, space: Space, index: int, floats: int) -> Storage:
        self._storages += 1
        return Storage(self._storages, space, index, floats)

    def room(self, elements: int, element_bytes: int | None = None) -> Storage:
        """Return memory of the arena for so many elements."""
        return self._storage(Space.ARENA, 0, words(elements, element_bytes or self.dtype.itemsize))

    def constant(self, value: Value, *, floats: bool = False) -> Storage:
        """Return a constant's storage; ``floats``: in 32 bits whatever others are stored in."""
        constant = Constant(value, np.dtype(np.float32) if floats else self.dtype)
        self._constants.append(constant)
        return self._storage(Space.CONSTANT, len(self._constants) - 1, constant.words)

    def image(self, name: str) -> Image:
        """Return the shape of a tensor, as images."""
        return image_of(self.graph.shape(name))

    def in_blocks(self, name: str) -> bool:
        """Tell whether a tensor lies in blocks already."""
        return name in self._places and self._places[name].blocks is not None

    def rows(self, name: str) -> Storage:
        """Return where a tensor lies in rows."""
        if name in self.graph.kept_constants and name not in self._places:
            self._places[name] = _Places(rows=self.constant(self.graph.kept_constants[name]))
        places, image = self._places[name], self.image(name)
        if places.rows is None and places.blocks is None:
            self._load(name, places)
        if places.rows is None:
            assert places.blocks is not None  # noqa: S101
            if image.is_rows:
                places.rows = places.blocks
            else:
                places.rows = self.room(image.images * image.channels * image.pixels)
                self._convert("unpack", f"{name} to rows", places.rows, places.blocks, image)
        return places.rows

    def blocks(self, name: str) -> Storage:
        """Return where a tensor lies in blocks."""
        if name not in self._places:
            self.rows(name)
        places, image = self._places[name], self.image(name)
        if places.blocks is None and places.rows is None and not (image.is_rows and not self.half):
            places.blocks = self.room(4 * image.vectors)
            self._convert("load", f"{name} to blocks", places.blocks, self._outside(name), image)
        if places.blocks is None:
            rows = self.rows(name)
            if image.is_rows:
                places.blocks = rows
            else:
                places.blocks = self.room(4 * image.vectors)
                self._convert("pack", f"{name} to blocks", places.blocks, rows, image)
        return places.blocks

    def _outside(self, name: str) -> Storage:
        """Return the array that a run brings along."""
        index = [info.name for info in self.graph.inputs].index(name)
        return self._storage(Space.INPUT, index, words(self.graph.tensors[name].elements, 4))

    def _load(self, name: str, places: _Places) -> None:
        outside = self._outside(name)
        if not self.half:
            places.rows = outside
            return
        count = self.graph.tensors[name].elements
        places.rows = self.room(count)
        self._convert("load", f"{name} in 16 bits", places.rows, outside, Image(1, count, 1, 1))

    def _convert(self, kernel: str, label: str, to: Storage, source: Storage, image: Image) -> None:
        count = image.vectors if kernel in ("pack", "load") else image.images * image.channels * image.pixels
        self.emit_flat(kernel, label, (to, source), count, push=(image.images, image.channels, image.pixels))

    def new_rows(self, name: str) -> Storage:
        """Return memory for a tensor in rows."""
        return self.put_rows(name, self.room(self.graph.tensors[name].elements))

    def new_blocks(self, name: str) -> Storage:
        """Return memory for a tensor in blocks."""
        return self.put_blocks(name, self.room(4 * self.image(name).vectors))

    def put_rows(self, name: str, storage: Storage) -> Storage:
        """Say where a tensor lies in rows."""
        self._places.setdefault(name, _Places()).rows = storage
        return storage

    def put_blocks(self, name: str, storage: Storage) -> Storage:
        """Say where a tensor lies in blocks."""
        self._places.setdefault(name, _Places()).blocks = storage
        return storage

    def operand(self, name: str) -> Operand:
        """Return a tensor in rows as one with strides."""
        return self._strided(name, self.rows(name))

    def new_operand(self, name: str) -> Operand:
        """Return memory for a tensor in rows, as one with strides."""
        return self._strided(name, self.new_rows(name))

    def _strided(self, name: str, storage: Storage) -> Operand:
        shape = self.graph.shape(name)
        return Operand(storage, Element.FLOAT, shape, compact_strides(shape))

    def emit_flat(
        self,
        kernel: str,
        label: str | Node,
        buffers: Sequence[Storage],
        count: int,
        *,
        constants: Sequence[int] = (),
        push: Sequence[float] = (),
    ) -> None:
        """Append a dispatch of ``count`` invocations, each of which knows its number."""
        groups = -(-count // LANES)
        across = min(groups, _MOST_GROUPS)
        shape = (across, -(-groups // across), 1)
        self.emit(kernel, label, buffers, constants=(LANES, *constants), push=push, groups=shape)

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
    ) -> None:
        """Append a dispatch; of ``push`` integers and floats are packed as what they are.

        Raises:
            PowerlabError: the device cannot do so much at once.
        """
        name = label if isinstance(label, str) else label.name or label.outputs[0]
        largest = max(4 * buffer.floats for buffer in buffers)
        if largest > self.largest_bytes or max(groups) > _MOST_GROUPS:
            raise PowerlabError(
                f"{name} needs {largest / 2**20:.0f} MiB in one piece, or too many work groups, for this GPU, whose "
                f"kernels see {self.largest_bytes / 2**20:.0f} MiB at once; use a smaller batch or model."
            )
        packed = struct.pack("".join("f" if isinstance(one, float) else "i" for one in push), *push)
        self._dispatches.append(Dispatch(kernel, name, tuple(buffers), written, tuple(constants), packed, groups))

    @property
    def dispatches(self) -> int:
        """Return how many dispatches there are."""
        return len(self._dispatches)

    def finish(self) -> GpuProgram:
        """Put every output of the network where a run returns it, and return the whole program."""
        for index, info in enumerate(self.graph.outputs):
            out = self._storage(Space.OUTPUT, index, words(info.elements, 4))
            label, image = f"{info.name} out", self.image(info.name)
            if self.in_blocks(info.name):
                self._convert("store", label, out, self.blocks(info.name), image)
            else:
                self._convert("store", label, out, self.rows(info.name), Image(1, info.elements, 1, 1))
        return GpuProgram(
            dispatches=tuple(self._dispatches),
            constants=tuple(self._constants),
            inputs=tuple(words(info.elements, 4) for info in self.graph.inputs),
            outputs=tuple(words(info.elements, 4) for info in self.graph.outputs),
            half=self.half,
        )
