"""What lowering keeps while it walks a graph: each tensor in every layout it was asked for, and the steps so far.

A reorder is made only where an operator asks for a layout that nobody has made yet.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.engine.codegen.concat_in_place import Place
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.pairs.readers import ends_in_pairs, tensors_read_in_pairs
from powerlab.engine.codegen.weights import Made, PackedWeights
from powerlab.engine.ir.constants import Recipe, Value
from powerlab.engine.ir.graph import Graph, Node, quoted
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import (
    BYTE_BLOCK,
    NO_HALO,
    PAIR_IMAGE,
    Halo,
    Layout,
    blocked,
    byte_blocks,
    byte_words,
    divide_up,
    frames4,
    pair_blocks,
    pair_words,
    planar,
    shape4,
)
from powerlab.engine.program.operand import (
    MOST_AXES,
    Element,
    Operand,
    as_floats,
    compact_strides,
    element_of,
    joined,
    readable,
)
from powerlab.engine.program.program import Floats, Program, Step, Tensor
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.memory import ALWAYS_THERE_BYTES, available_bytes, value_bytes, weight_bytes
from powerlab.engine.target.machine import Machine

Chosen = tuple[ConvShape, Choice]


class Builder:
    """Grows a program; the operators' lowering functions call it.

    Args:
        graph: the optimised graph.
        machine: the kernels to lower for, the threads the plan will run on, and their caches.
        halos: the zeros each tensor needs around its planes, by tensor name.
        places: the tensors that lie inside others in the blocked layout, by tensor name; these have the same halo.
        chosen: what was chosen for each convolution, by the name of its result.
        preactivations: the ScaleShift each convolution applies to what it reads, by the name of its result.
        words: the tensors of bytes that have a word a pixel instead of blocks.
        made: see :class:`.PackedWeights`.

    Attributes:
        packed_matrices: right sides of products that are packed already, by what they are and are multiplied by.
        packed_pairs: such in bfloat16.
        written: results of nodes that need no steps any more, because those of a node before them write it.
    """

    def __init__(
        self,
        graph: Graph,
        machine: Machine,
        *,
        halos: Mapping[str, Halo],
        places: Mapping[str, Place],
        chosen: Mapping[str, Chosen],
        preactivations: Mapping[str, Node],
        words: Collection[str] = (),
        made: Made | None = None,
    ) -> None:
        self.graph = graph
        self.machine = machine
        self.tier = machine.tier
        self._halos = halos
        self._places = places
        self._chosen = chosen
        self._preactivations = preactivations
        self._words = words
        self._bytes: dict[str, Tensor] = {}
        self._pairs: dict[str, Tensor] = {}
        self._pair_images: dict[str, Tensor] = {}
        self._pair_rows: dict[str, Tensor] = {}
        self._read_in_pairs = tensors_read_in_pairs(graph, chosen, places) if self.tier.computes_in_16_bits() else {}
        self._readers = graph.consumers()
        self.packed_matrices: dict[tuple[Operand, float], Operand] = {}
        self.packed_pairs: dict[Operand, Operand] = {}
        self._narrowed_rows: dict[Tensor, Tensor] = {}
        self.written: set[str] = set()
        self._wholes: dict[str, Tensor] = {}
        self._steps: list[Step] = []
        self._packed = PackedWeights(machine.threads, weight_bytes(graph), made)
        self._storages = 0
        self._hidden_inputs: list[Floats] = []
        self._weights_room, self._asked = ALWAYS_THERE_BYTES, False
        self._external: dict[str, Tensor] = {}
        self._blocked: dict[str, Tensor] = {}
        self._planar: dict[str, Tensor] = {}
        self._channels_last: dict[str, Tensor] = {}
        self._views: dict[str, Operand] = {}
        self._whole_numbers: dict[str, Operand] = {}
        for index, info in enumerate(graph.inputs):
            if self.is_whole(info.name):
                self._whole_numbers[info.name] = self._compact(Space.INPUT, index, info.shape)
            else:
                self._external[info.name] = self._outside(Space.INPUT, index, info.shape)

    @property
    def threads(self) -> int:
        """Return the threads that run the steps which are added now."""
        return self.machine.threads

    def _storage(self, space: Space, index: int, floats: int) -> Storage:
        self._storages += 1
        return Storage(self._storages, space, index, floats)

    def _outside(self, space: Space, index: int, shape: tuple[int, ...]) -> Tensor:
        layout = planar(shape4(shape), compact=True)
        return Tensor(self._storage(space, index, layout.size), layout)

    def _compact(self, space: Space, index: int, shape: tuple[int, ...]) -> Operand:
        """Return room for integers, which follow on each other."""
        storage = self._storage(space, index, math.prod(shape) * Element.INT.floats)
        return Operand(storage, Element.INT, shape, compact_strides(shape))

    def room(self, sizes: tuple[int, ...]) -> Operand:
        """Return room for floats that follow on each other, for what lies between the steps of one node."""
        storage = self._storage(Space.ARENA, 0, math.prod(sizes))
        return Operand(storage, Element.FLOAT, sizes, compact_strides(sizes))

    def whole_room(self, sizes: tuple[int, ...]) -> Operand:
        """Return room for integers that follow on each other, likewise."""
        return self._compact(Space.ARENA, 0, sizes)

    def is_whole(self, name: str) -> bool:
        """Tell whether a tensor holds integers or bools: such lie in no layout but the general one."""
        return element_of(self.graph.tensors[name].dtype) is Element.INT

    def constant(self, name: str) -> Floats:
        """Return a constant's value."""
        return readable(self.graph.constants[name])

    def kept(self, name: str) -> Value:
        """Return a constant's value, or the recipe of a large one."""
        value = self.graph.kept_constants[name]
        return value if isinstance(value, Recipe) else readable(value)

    def optional_constant(self, name: str) -> Floats | None:
        """Return a constant's value, or None for an absent input."""
        return self.constant(name) if name else None

    def halo(self, name: str) -> Halo:
        """Return the zeros ``name`` needs around its planes."""
        return self._halos.get(name, NO_HALO)

    def chosen(self, node: Node) -> Chosen:
        """Return what a convolution is asked to do, and what was chosen for it."""
        return self._chosen[node.outputs[0]]

    def preactivation(self, node: Node) -> Node:
        """Return the ScaleShift that a convolution applies to what it reads."""
        return self._preactivations[node.outputs[0]]

    def readers(self, name: str) -> Sequence[Node]:
        """Return the nodes that read a tensor."""
        return self._readers[name]

    def sole_reader(self, name: str) -> Node | None:
        """Return the node that alone reads a tensor, once; None where there is none, or the tensor is an output."""
        readers = self._readers[name]
        return readers[0] if len(readers) == 1 and name not in self.graph.output_names() else None

    def is_blocked(self, name: str) -> bool:
        """Tell whether ``name`` already lies in the blocked layout."""
        return name in self._blocked

    def lies_in_blocks(self, name: str) -> bool:
        """Tell whether ``name`` lies in the blocked layout and in no other yet."""
        return name in self._blocked and name not in self._planar

    def is_planar(self, name: str) -> bool:
        """Tell whether ``name`` already lies in the planar layout."""
        return name in self._planar

    def has_strides(self, name: str) -> bool:
        """Tell whether ``name`` can be read as a general tensor without a copy of it."""
        return name in self._planar or name in self._views or self.is_outside(name)

    def is_view(self, name: str) -> bool:
        """Tell whether ``name`` lies in another tensor, in no layout of its own yet."""
        return name in self._views and name not in self._planar

    def show(self, name: str, operand: Operand) -> None:
        """Let a tensor of floats be a view of another, for kernels that take any strides."""
        self._views[name] = operand

    def is_outside(self, name: str) -> bool:
        """Tell whether ``name`` is an array from outside that lies in no layout of the engine's yet."""
        return name in self._external and name not in self._planar and name not in self._blocked

    @property
    def steps(self) -> int:
        """Return how many steps there are so far."""
        return len(self._steps)

    def in_arena(self, layout: Layout) -> Tensor:
        """Return a new tensor of the arena."""
        return Tensor(self._storage(Space.ARENA, 0, layout.size), layout)

    def scratch(self, floats: int) -> Tensor:
        """Return room for so many floats for each thread, for one step to use as it likes."""
        return self.in_arena(Layout(self.threads, floats, 1, 1, 1, 1, floats, floats, floats))

    def emit(
        self, family: str, node: Node | str, out: Tensor, x: Tensor, y: Tensor | None = None, **fields: Any
    ) -> None:
        """Append a step; ``fields`` are those of the native step, and some of :class:`Step`, by name.

        Weights may be a recipe: they are there in the end.
        """
        label = node if isinstance(node, str) else node.name or node.outputs[0]
        known = ("choice", "weights", "bias", "packed", "packed_bias", "scratch", "parts")
        extras = {name: fields.pop(name) for name in known if name in fields}
        recipe = extras.pop("weights") if isinstance(extras.get("weights"), Recipe) else None
        shared = recipe is not None and self._packed.share(len(self._steps), recipe)
        if recipe is not None and not shared:
            self._weights_room -= value_bytes(recipe)
        step = Step(family, label, out, x, y, settings=fields, **extras)
        self._weights_room -= _weight_bytes(step)
        if self._weights_room < 0 and not self._asked:
            self._asked, self._weights_room = True, self._weights_room + available_bytes()
        if self._weights_room < 0:
            raise TooLargeError(
                f"the weights up to node {quoted(label)} are larger than the memory there is; use a smaller model."
            )
        if recipe is not None and not shared:
            self._packed.add(len(self._steps), recipe)
        self._steps.append(step)

    def new_blocked(self, name: str) -> Tensor:
        """Return room for ``name`` in the blocked layout, to be written by the step emitted next."""
        if name not in self._blocked:
            place = self._places.get(name)
            self._blocked[name] = self._whole(name) if place is None else self._part(name, place)
        return self._blocked[name]

    def byte_tensor(self, name: str) -> Tensor:
        """Return a tensor of bytes, which lies in one layout only."""
        return self._bytes[name]

    def new_bytes(self, name: str) -> Tensor:
        """Return room for the tensor of bytes ``name``, to be written by the step emitted next."""
        if name not in self._bytes:
            place = self._places.get(name)
            self._bytes[name] = self._whole_bytes(name) if place is None else self._part_bytes(name, place)
        return self._bytes[name]

    def _whole_bytes(self, name: str) -> Tensor:
        if name not in self._wholes:
            layout_of = byte_words if name in self._words else byte_blocks
            self._wholes[name] = self.in_arena(layout_of(frames4(self.graph.shape(name)), self.halo(name)))
        return self._wholes[name]

    def _part_bytes(self, name: str, place: Place) -> Tensor:
        whole, channels = self._whole_bytes(place.whole), shape4(self.graph.shape(name))[1]
        layout = replace(whole.layout, c=channels, blocks=divide_up(channels, BYTE_BLOCK))
        return whole.seen_as(layout, place.first_channel // BYTE_BLOCK * layout.plane)

    def alias_bytes(self, name: str, tensor: Tensor) -> None:
        """Let ``name`` be another view of bytes that are already written."""
        self._bytes[name] = tensor

    def pairs(self, name: str) -> Tensor:
        """Return ``name`` in blocks of 16-bit floats."""
        if name not in self._pairs:
            # The few channels of an image from outside fill no block of floats.
            shallow = self.is_outside(name) and shape4(self.graph.shape(name))[1] < self.tier.narrow_block
            source = self.external(name) if shallow else self.blocked(name)
            kernel = f"narrow_{'planes' if shallow else 'blocks'}_{self.tier.precision}"
            self.emit(kernel, f"{name} to {self.tier.precision}", self.new_pairs(name), source)
        return self._pairs[name]

    def pair_image(self, name: str) -> Tensor:
        """Return an image from outside, of up to four channels, with two words of 16-bit floats a pixel."""
        if name not in self._pair_images:
            made = self.in_arena(pair_blocks(shape4(self.graph.shape(name)), PAIR_IMAGE, self.halo(name)))
            source, precision = self.external(name), self.tier.precision
            self.emit(f"narrow_image_{precision}", f"{name} to {precision}", made, source, numbers=[PAIR_IMAGE, 0])
            self._pair_images[name] = made
        return self._pair_images[name]

    def new_pairs(self, name: str) -> Tensor:
        """Return room for ``name`` in blocks of 16-bit floats, to be written by the step emitted next."""
        shape = shape4(self.graph.shape(name))
        return self._pairs.setdefault(name, self.in_arena(pair_blocks(shape, self.tier.narrow_block, self.halo(name))))

    def lies_in_pairs(self, name: str) -> bool:
        """Tell whether ``name`` already lies in blocks of 16-bit floats."""
        return name in self._pairs

    def is_read_in_pairs(self, name: str) -> bool:
        """Tell whether all that reads ``name`` are convolutions that read 16-bit floats."""
        return self._read_in_pairs.get(name, False)

    def ends_in_pairs(self, node: Node) -> bool:
        """Tell whether a depthwise convolution ends in 16-bit floats."""
        return ends_in_pairs(node, self._read_in_pairs)

    def pair_rows(self, name: str) -> Tensor:
        """Return a matrix, in no blocks, as rows of 16-bit floats filled up to whole blocks: pixels of one row."""
        if name not in self._pair_rows:
            x = self.planar(name)
            layout = Layout(1, 1, x.layout.n, x.layout.c, 1, 1, x.layout.image, x.layout.size, x.layout.size)
            self._pair_rows[name] = self.narrowed_rows(name, x.seen_as(layout))
        return self._pair_rows[name]

    def new_pair_rows(self, name: str, readers: Iterable[str]) -> Tensor:
        """Return room for a matrix as such rows, in blocks, to be written by the step emitted next.

        Args:
            name: of the matrix.
            readers: under what names it is read.
        """
        rows, features = self.graph.shape(name)
        block, words = self.tier.narrow_block // 2, pair_words(features, self.tier.narrow_block)
        out = self.in_arena(Layout(1, features, 1, rows, words // block, words, rows * words, block, rows * words))
        self._pair_rows |= dict.fromkeys(readers, out.seen_as(_whole_rows(features, rows, words)))
        return out

    def narrowed_rows(self, name: str, x: Tensor) -> Tensor:
        """Append the step that rounds the rows of a plane to 16-bit floats, in whole blocks, once for all views.

        Args:
            name: of what lies there.
            x: one plane of floats.

        Returns: a row of pixels, one for each row, whose channels are its numbers.
        """
        if x not in self._narrowed_rows:
            rows, features, words = x.layout.h, x.layout.w, pair_words(x.layout.w, self.tier.narrow_block)
            out = self.in_arena(Layout(1, 1, rows, words, 1, 1, words, rows * words, rows * words))
            self.emit(f"narrow_rows_{self.tier.precision}", f"{name} to {self.tier.precision}", out, x)
            self._narrowed_rows[x] = out.seen_as(_whole_rows(features, rows, words))
        return self._narrowed_rows[x]

    def _whole(self, name: str) -> Tensor:
        """Return the memory of a tensor that lies in no other; tensors that lie in this one may have come before."""
        if name not in self._wholes:
            shape = shape4(self.graph.shape(name))
            self._wholes[name] = self.in_arena(blocked(shape, self.tier.vector_width, self.halo(name)))
        return self._wholes[name]

    def _part(self, name: str, place: Place) -> Tensor:
        whole, width = self._whole(place.whole), self.tier.vector_width
        channels = shape4(self.graph.shape(name))[1]
        layout = replace(whole.layout, c=channels, blocks=divide_up(channels, width))
        return whole.seen_as(layout, place.first_channel // width * layout.plane)

    def new_planar(self, name: str) -> Tensor:
        """Return room for ``name`` in the planar layout, to be written by the step emitted next."""
        return self._planar.setdefault(name, self.in_arena(planar(shape4(self.graph.shape(name)))))

    def put_channels_first(self, source: str, name: str) -> None:
        """Let ``name`` be ``source`` with its last axis as the second; nothing moves before somebody wants a layout.

        Args:
            source: shape (N, ..., C), in no blocks.
            name: shape (N, C, ...).
        """
        n, c, h, w = shape4(self.graph.shape(name))
        held = self._planar.get(source) or self.external(source)
        self._channels_last[name] = held.seen_as(Layout(n, c, h, w, c, c, w * c, 1, held.layout.image))

    def is_channels_last(self, name: str) -> bool:
        """Tell whether ``name`` is another tensor with its last axis as the second."""
        return name in self._channels_last

    def put_channels_last(self, source: str, name: str) -> None:
        """Let ``name`` be ``source``, which has its last axis as the second, with that one last again.

        Args:
            source: shape (N, C, ...), of which :meth:`is_channels_last` is true.
            name: shape (N, ..., C).
        """
        held = self._channels_last[source]
        layout = planar(shape4(self.graph.shape(name)))
        rows = held.seen_as(replace(layout, image=held.layout.image))
        if held.storage.space is Space.ARENA:
            self._planar[name] = rows
        else:
            self._copy_rows(name, rows)

    def keeps_pixels(self, source: str, name: str) -> bool:
        """Let ``name`` be ``source`` with its pixels in other rows, if that takes no planar layout; return whether.

        Args:
            source: shape (N, C, ...).
            name: shape (N, C, ...).
        """
        if source in self._planar:
            return False
        _, c, h, w = shape4(self.graph.shape(name))
        if source in self._channels_last:
            held = self._channels_last[source]
            self._channels_last[name] = held.seen_as(replace(held.layout, h=h, w=w, row=w * c))
            return True
        flat = self._blocked[source].layout.flat() if source in self._blocked else None
        if flat is None or name in self._places or self.halo(name) != NO_HALO:
            return False
        self._blocked[name] = self._blocked[source].seen_as(replace(flat, h=h, w=w, row=w * flat.pixel))
        return True

    def keeps_channels(self, source: str, name: str, first: int) -> bool:
        """Let ``name`` be the channels of ``source`` from ``first`` on, if they fill blocks of it; return whether."""
        held, width, channels = self._blocked[source], self.tier.vector_width, self.graph.shape(name)[1]
        halo = held.layout.halo
        if first % width or (channels % width and first + channels != held.layout.c) or name in self._places:
            return False
        if halo.union(self.halo(name)) != halo:
            return False
        layout = replace(held.layout, c=channels, blocks=divide_up(channels, width))
        self._blocked[name] = held.seen_as(layout, first // width * layout.plane)
        return True

    def alias_planar(self, name: str, tensor: Tensor) -> None:
        """Let ``name`` be another view of memory that is already written."""
        self._planar[name] = tensor

    def external(self, name: str) -> Tensor:
        """Return the array from outside that holds ``name``: an input of the graph, or a constant."""
        if name not in self._external:
            values = self.constant(name)
            index = len(self.graph.inputs) + len(self._hidden_inputs)
            self._external[name] = self._outside(Space.INPUT, index, values.shape)
            self._hidden_inputs.append(values)
        return self._external[name]

    def planes(self, name: str) -> Tensor:
        """Return ``name`` in planes: the array from outside itself where it lies in no layout yet."""
        return self.external(name) if self.is_outside(name) else self.planar(name)

    def number(self, value: float) -> Operand:
        """Return a number that is known now as an array from outside, without axes."""
        index = len(self.graph.inputs) + len(self._hidden_inputs)
        self._hidden_inputs.append(np.full(1, value, np.float32))
        return Operand(self._storage(Space.INPUT, index, 1), Element.FLOAT, (), ())

    def blocked(self, name: str) -> Tensor:
        """Return ``name`` in the blocked layout."""
        if name in self._blocked:
            return self._blocked[name]
        if name in self._channels_last and name not in self._planar:
            held, out = self._channels_last[name], self.new_blocked(name)
            layout = replace(held.layout, blocks=out.layout.blocks, plane=self.tier.vector_width)
            self.emit("channels_to_blocks", f"{name} to blocks", out, held.seen_as(layout))
            return out
        source = self.planar(name) if self.is_view(name) else self._planar.get(name) or self.external(name)
        self.emit("reorder_to_blocks", f"{name} to blocks", self.new_blocked(name), source)
        return self._blocked[name]

    def planar(self, name: str) -> Tensor:
        """Return ``name`` in the planar layout."""
        if name in self._planar:
            return self._planar[name]
        if name in self._channels_last:
            return self._planes_of_channels(name)
        if self.is_view(name):
            self.copy(f"{name} in rows", self.new_general(name), self._views[name])
            return self._planar[name]
        held = self._blocked.get(name)
        if held is None:
            self._copy_rows(name, self.external(name))
        elif _is_also_planar(held.layout):
            layout = held.layout
            self._planar[name] = held.seen_as(Layout(layout.n, layout.c, 1, 1, layout.c, 1, 1, 1, layout.image))
        else:
            self.emit("reorder_to_planes", f"{name} to planes", self.new_planar(name), held)
        return self._planar[name]

    def _copy_rows(self, name: str, source: Tensor) -> None:
        """Copy ``name`` from an array from outside, which steps do not write to."""
        out = self.new_planar(name)
        self.emit("copy", f"{name} to rows", out.seen_as(_images(out.layout)), source.seen_as(_images(source.layout)))

    def _planes_of_channels(self, name: str) -> Tensor:
        """Return a tensor whose channels come last in the planar layout."""
        made = self.new_planar(name)
        out = _strided(made, (made.layout.n, made.layout.c, made.layout.h, made.layout.w))
        self.copy(f"{name} to planes", out, _pixels(self._channels_last[name]))
        return made

    def general(self, name: str) -> Operand:
        """Return ``name`` as a general tensor of its own shape."""
        if self.is_whole(name):
            if name not in self._whole_numbers:
                self._whole_numbers[name] = self._hidden_whole_numbers(name)
            return self._whole_numbers[name]
        if self.is_view(name):
            return self._views[name]
        held = name in self._planar or name in self._blocked or name in self._channels_last
        return _strided(self.planar(name) if held else self.external(name), self.graph.shape(name))

    def new_general(self, name: str) -> Operand:
        """Return room for ``name`` as a general tensor of its own shape, to be written by the steps emitted next.

        One of floats lies in the planar layout, as kernels for images may read it too.
        """
        shape = self.graph.shape(name)
        if not self.is_whole(name):
            return _strided(self.new_planar(name), shape)
        return self._whole_numbers.setdefault(name, self._compact(Space.ARENA, 0, shape))

    def overwrites(self, name: str, source: str) -> None:
        """Let a tensor lie where another one does, general ones both, which the steps emitted next change."""
        if self.is_whole(name):
            self.alias_general(name, self.general(source))
        else:
            self._planar[name] = self.planar(source)

    def alias_general(self, name: str, operand: Operand) -> None:
        """Let a tensor of integers be another view of memory that is already written."""
        self._whole_numbers[name] = operand

    def emit_general(
        self,
        family: str,
        node: Node | str,
        operands: Sequence[Operand],
        numbers: Sequence[int] = (),
        *,
        scratch: Tensor | None = None,
        **fields: Any,
    ) -> None:
        """Append a step of a general kernel.

        Args:
            family: the kernel, as the native registry calls it.
            node: what it computes.
            operands: what it writes, then what it reads.
            numbers: what the kernel's file says.
            scratch: memory it may use as it likes.
            fields: others of the native step.

        Raises:
            PowerlabError: an operand has more axes than a kernel takes.
        """
        axes = max(len(operand.sizes) for operand in operands)
        if axes > MOST_AXES:
            raise PowerlabError(f"{node} works on {axes} axes, and the built-in engine goes up to {MOST_AXES}.")
        label = node if isinstance(node, str) else node.name or node.outputs[0]
        settings = {"numbers": list(numbers), **fields}
        self._steps.append(Step(family, label, scratch=scratch, operands=tuple(operands), settings=settings))

    def emit_gradient(
        self,
        family: str,
        node: Node,
        x: Tensor,
        y: Tensor | None = None,
        *,
        out: Tensor | None = None,
        operands: Sequence[Operand],
        scratch: Tensor | None = None,
        numbers: Sequence[int] = (),
        **fields: Any,
    ) -> None:
        """Append a step that reads images and writes general tensors, beside images or instead of them."""
        settings = {"numbers": list(numbers), **fields}
        label = node.name or node.outputs[0]
        self._steps.append(Step(family, label, out, x, y, scratch=scratch, operands=tuple(operands), settings=settings))

    def emit_each(
        self, family: str, node: Node | str, out: Operand, *operands: Operand, numbers: Sequence[int] = ()
    ) -> None:
        """Append a step that goes element by element; what it reads is broadcast to what it writes."""
        self.emit_general(family, node, joined((out, *(one.broadcast(out.sizes) for one in operands))), numbers)

    def copy(self, node: Node | str, out: Operand, source: Operand) -> None:
        """Append a step that copies a general tensor, broadcast where it is smaller."""
        self.emit_each(f"copy_strided_{out.element.suffix}", node, out, source)

    def _hidden_whole_numbers(self, name: str) -> Operand:
        value = self.graph.constants[name]
        if value.dtype == np.uint64 and value.size and value.max() > np.iinfo(np.int64).max:
            raise PowerlabError(
                f"the constant {quoted(name)} holds an integer of 2^63 or more, and the engine computes with signed "
                "64-bit integers."
            )
        index = len(self.graph.inputs) + len(self._hidden_inputs)
        self._hidden_inputs.append(as_floats(value))
        return self._compact(Space.INPUT, index, value.shape)

    def finish(self) -> Program:
        """Write the graph's outputs and return the program."""
        for index, info in enumerate(self.graph.outputs):
            if info.elements == 0:
                continue
            if self.is_whole(info.name):
                self.copy(f"{info.name} out", self._compact(Space.OUTPUT, index, info.shape), self.general(info.name))
                continue
            out = self._outside(Space.OUTPUT, index, info.shape)
            if info.name in self._blocked and info.name not in self._planar:
                self.emit("reorder_to_planes", f"{info.name} out", out, self._blocked[info.name])
            else:
                held = info.name in self._planar or info.name in self._channels_last
                source = self.planar(info.name) if held else self.external(info.name)
                layout = source.layout
                self.emit("copy", f"{info.name} out", out.seen_as(_images(out.layout)), source.seen_as(_images(layout)))
        for index, weights in self._packed.finish().items():
            self._steps[index] = replace(self._steps[index], weights=weights)
        return Program(tuple(self._steps), tuple(self._hidden_inputs))


def _strided(tensor: Tensor, shape: tuple[int, ...]) -> Operand:
    """Return a planar tensor as a general one of the shape it has in the graph: only images may lie apart."""
    strides = compact_strides(shape)
    if len(shape) > 1:
        strides = (tensor.layout.image, *strides[1:])
    return Operand(tensor.storage, Element.FLOAT, shape, strides, tensor.offset)


def _pixels(tensor: Tensor) -> Operand:
    """Return a tensor of images as a general one of the shape (n, c, h, w); its planes are channels."""
    layout = tensor.layout
    sizes, strides = (layout.n, layout.c, layout.h, layout.w), (layout.image, layout.plane, layout.row, layout.pixel)
    return Operand(tensor.storage, Element.FLOAT, sizes, strides, tensor.offset)


def _weight_bytes(step: Step) -> int:
    packed = (step.weights, *(part.weights for part in step.parts))
    return sum(weights.nbytes for weights in packed if weights is not None)


def _is_also_planar(layout: Layout) -> bool:
    """Tell whether blocks of one-pixel planes follow on each other, so that channels do too."""
    return layout.h == layout.w == 1 and layout.plane == layout.pixel


def _images(layout: Layout) -> Layout:
    """Return a planar layout as one row an image."""
    elements = layout.c * layout.h * layout.w
    return Layout(layout.n, 1, 1, elements, 1, 1, elements, elements, layout.image)


def _whole_rows(features: int, rows: int, words: int) -> Layout:
    """Return rows of words as the pixels of one row, whose channels are one block."""
    return Layout(1, features, 1, rows, 1, words, rows * words, words, rows * words)
