"""Knows where each tensor of a network lies and how, and brings it into the form that a kernel wants.

A tensor lies in **rows**, one number after another, or in **blocks**: [image][block of 4 channels][pixel], 4 channels a
vector, the last block filled up with finite numbers. Whoever needs the other form gets it by a dispatch, once. Bytes
lie in blocks alone, 4 channels a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.images import Image, image_of
from powerlab.engine.gpu.joins import Join, find_joins
from powerlab.engine.gpu.picking import picking_inputs, place_views
from powerlab.engine.gpu.program import GpuProgram, words
from powerlab.engine.gpu.recorder import Recorder
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.operand import Element, Operand, compact_strides
from powerlab.engine.program.storage import Space, Storage


@dataclass(slots=True)
class _Places:
    """Where a tensor lies; None where it does not lie in this form."""

    rows: Storage | None = None
    blocks: Storage | None = None
    bytes: Storage | None = None


@dataclass(slots=True, kw_only=True)
class Builder(Recorder):
    """See the module.

    Attributes:
        graph: the optimised graph.
        bounded: inputs of whole numbers -> the largest that a run may give.
        picked: inputs that pick along axes -> the size of the smallest of them.
    """

    graph: Graph
    bounded: Mapping[str, int] = field(default_factory=dict)
    picked: dict[str, int] = field(default_factory=dict)
    _views: dict[str, str] = field(default_factory=dict)
    _picking: set[str] = field(default_factory=set)
    _places: dict[str, _Places] = field(default_factory=dict)
    _joins: dict[str, Join] = field(default_factory=dict)
    _joined: dict[str, Storage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._views = place_views(self.graph)
        self._picking = picking_inputs(self.graph, self._views)
        self._joins = find_joins(self.graph, self.dtype.itemsize, self.target.alignment_bytes)
        for info in self.graph.inputs:
            self._places[info.name] = _Places()

    def image(self, name: str) -> Image:
        """Return the shape of a tensor, as images."""
        return image_of(self.graph.shape(name))

    def places(self, name: str, size: int) -> Storage:
        """Return whole numbers that pick along an axis of a size.

        They are a constant, computed, or an input, whose numbers runs check; of a view of an input the input's own.

        Raises:
            PowerlabError: a constant lies outside.
        """
        if name in self.graph.constants:
            known = self.graph.constants[name]
            if known.size and not -size <= known.min() <= known.max() < size:
                held = f"{known.min()} to {known.max()}"
                raise PowerlabError(f"the constant {name!r} picks from {size} rows and holds {held}; fix the model.")
            return self.constant(np.asarray(known, np.int32), integers=True)
        if name not in self._views:
            count = self.graph.tensors[name].elements
            places = self.room(count, np.dtype(np.int32).itemsize)
            self.emit_flat("places", f"{name} as places", (places, self.rows(name)), count, push=(count,))
            return places
        name = self._views[name]
        self.picked[name] = min(size, self.picked.get(name, size))
        return self._outside(name)

    def place_count(self, name: str) -> int:
        """Return how many places there are in the input that a tensor is a view of."""
        return self.graph.tensors[self._views[name]].elements

    def is_place(self, name: str) -> bool:
        """Tell whether a tensor is an input that picks along an axis, or a view of one, of which there is no copy."""
        return self._views.get(name) in self._picking

    def in_blocks(self, name: str) -> bool:
        """Tell whether a tensor lies in blocks already."""
        return name in self._places and self._places[name].blocks is not None

    def rows(self, name: str) -> Storage:
        """Return where a tensor lies in rows."""
        if name in self.graph.kept_constants and name not in self._places:
            self._places[name] = _Places(rows=self.constant(self.graph.kept_constants[name]))
        if self._views.get(name) in self._picking and name not in self._places:
            self._places[name] = _Places()
        places, image = self._places[name], self.image(name)
        if places.rows is None and places.blocks is None:
            self._load(name, places)
        if places.rows is None:
            assert places.blocks is not None  # noqa: S101
            if image.is_rows:
                places.rows = places.blocks
            else:
                places.rows = self.room(image.images * image.channels * image.pixels)
                self.convert("unpack", f"{name} to rows", places.rows, places.blocks, image)
        return places.rows

    def blocks(self, name: str) -> Storage:
        """Return where a tensor lies in blocks."""
        if name not in self._places:
            self.rows(name)
        places, image = self._places[name], self.image(name)
        loaded = places.blocks is None and places.rows is None and name not in self._picking
        if loaded and not (image.is_rows and not self.half):
            places.blocks = self.room(4 * image.vectors)
            self.convert("load", f"{name} to blocks", places.blocks, self._outside(name), image)
        if places.blocks is None:
            rows = self.rows(name)
            if image.is_rows:
                places.blocks = rows
            else:
                places.blocks = self.room(4 * image.vectors)
                self.convert("pack", f"{name} to blocks", places.blocks, rows, image)
        return places.blocks

    def _outside(self, name: str) -> Storage:
        """Return the array that a run brings along."""
        index = [info.name for info in self.graph.inputs].index(name)
        return self.storage(Space.INPUT, index, words(self.graph.tensors[name].elements, 4))

    def _load(self, name: str, places: _Places) -> None:
        source = self._views.get(name, name)
        outside = self._outside(source)
        if source in self._picking:
            count = self.graph.tensors[name].elements
            places.rows = self.room(count)
            self.emit_flat("numbers", f"{name} as numbers", (places.rows, outside), count, push=(count,))
            return
        if not self.half:
            places.rows = outside
            return
        count = self.graph.tensors[name].elements
        places.rows = self.room(count)
        self.convert("load", f"{name} in 16 bits", places.rows, outside, Image(1, count, 1, 1))

    def convert(self, kernel: str, label: str, to: Storage, source: Storage, image: Image) -> None:
        """Append a move between forms: ``pack``, ``unpack``, or ``load`` and ``store``, from and to the outside."""
        count = image.vectors if kernel in ("pack", "load") else image.images * image.channels * image.pixels
        self.emit_flat(kernel, label, (to, source), count, push=(image.images, image.channels, image.pixels))

    def bytes(self, name: str) -> Storage:
        """Return where a tensor of bytes lies: in blocks, 4 channels a word."""
        found = self._places[name].bytes
        if found is None:
            raise PowerlabError(f"the tensor {name!r} is bytes of the model's own, which a GPU does not take yet.")
        return found

    def new_bytes(self, name: str) -> Storage:
        """Return memory for a tensor of bytes."""
        return self.put_bytes(name, self.room(4 * self.image(name).vectors, 1))

    def put_bytes(self, name: str, storage: Storage) -> Storage:
        """Say where a tensor of bytes lies."""
        self._places.setdefault(name, _Places()).bytes = storage
        return storage

    def new_rows(self, name: str) -> Storage:
        """Return memory for a tensor in rows."""
        return self.put_rows(name, self.room(self.graph.tensors[name].elements))

    def new_blocks(self, name: str) -> Storage:
        """Return memory for a tensor in blocks: its place in what it is joined to, where it has one."""
        return self.put_blocks(name, self._room_of(name))

    def is_joined(self, name: str, whole: str, first: int) -> bool:
        """Tell whether a tensor in blocks lies in its place of another already, from a channel on."""
        return self._joins.get(name) == Join(whole, first) and self._places[name].blocks is self._joined.get(name)

    def _room_of(self, name: str) -> Storage:
        if name not in self._joined:
            join, image = self._joins.get(name), self.image(name)
            count = 4 * image.vectors
            self._joined[name] = (
                self.part(self._room_of(join.whole), join.first * image.pixels, count) if join else self.room(count)
            )
        return self._joined[name]

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

    def finish(self) -> GpuProgram:
        """Put every output of the network where a run returns it, and return the whole program."""
        self.store_outputs()
        return self.program()

    def store_outputs(self) -> None:
        """Put every output of the network where a run returns it."""
        for index, info in enumerate(self.graph.outputs):
            out = self.storage(Space.OUTPUT, index, words(info.elements, 4))
            label, image = f"{info.name} out", self.image(info.name)
            if self.in_blocks(info.name):
                self.convert("store", label, out, self.blocks(info.name), image)
            else:
                self.convert("store", label, out, self.rows(info.name), Image(1, info.elements, 1, 1))

    def program(self) -> GpuProgram:
        """Return the whole program."""
        return GpuProgram(
            dispatches=tuple(self.dispatches),
            constants=tuple(self.constants),
            inputs=tuple(words(info.elements, 4) for info in self.graph.inputs),
            outputs=tuple(words(info.elements, 4) for info in self.graph.outputs),
            half=self.half,
            picked=self.picked,
            bounded=self.bounded,
            parts=self.parts,
        )
