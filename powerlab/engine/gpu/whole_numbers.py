"""Whole numbers and truth that floats hold exactly, with which a GPU computes as with floats.

Nobody knows which numbers a run gives, but what exporters compute of token ids and masks is mostly small whatever they
are: whether an id is that of padding, how many tokens lie before it, which of them may be seen. So each tensor has a
range. Ids lie inside their table, and where a sum of masks would still be too large, runs may give small numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product, starmap
from typing import NamedTuple

import numpy as np

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.picking import picking_inputs, place_views, reads_places
from powerlab.engine.ir.graph import Graph, Node

_EXACT = {False: 2**24 - 1, True: 2**11 - 1}
"""The largest whole number to which floats of 32 bits, and of 16, round no other."""

_VIEWS = ("Concat", "Expand", "Gather", "GatherElements", "Reshape", "Slice", "Tile", "Transpose")
"""Operators that move numbers of the inputs which are no places."""

_COMPARISONS = ("equal", "less", "less_or_equal")
_TESTS = ("is_inf", "is_nan", "is_not_zero", "is_zero")
_LOGICAL = ("bit_and", "bit_or", "bit_xor")
_BOUNDS = (2**15, 255, 1)
"""Bounds of what a run gives that are tried where floats do not hold what becomes of anything larger."""


class Range(NamedTuple):
    """The least and the largest number that may be in a tensor."""

    least: int
    most: int


_TRUTH = Range(0, 1)


class WholeNumbers:
    """The tensors of whole numbers and truth of a graph whose numbers floats hold exactly.

    Args:
        graph: what :func:`powerlab.engine.passes.optimise` returned, without chains.
        half: whether numbers between kernels are stored in 16 bits.
        most: the largest whole number that a run may give where it picks nothing, without its sign; None: any.

    Attributes:
        bounded: the inputs of which that holds, with it.
    """

    def __init__(self, graph: Graph, *, half: bool, most: int | None = None) -> None:
        self._graph, self._most = graph, _EXACT[half]
        views = place_views(graph)
        picking = picking_inputs(graph, views)
        self._given = {name: source for name, source in views.items() if self._is_same(name, source, picking)}
        self._ranges = {info.name: _TRUTH for info in graph.inputs if info.dtype.kind == "b"}
        others = [info for info in graph.inputs if info.dtype.kind in "iu" and info.name not in picking]
        self.bounded = {} if most is None else {info.name: most for info in others}
        for info in others:
            if most is not None:
                self._note(info.name, Range(-most * (info.dtype.kind == "i"), most))
        for source, size in _picked_sizes(graph, views).items():
            self._note(source, Range(-size, size - 1))
        for node in graph.nodes:
            if node.outputs[0] in views and node.outputs[0] not in self._given:
                continue
            if graph.tensors[node.outputs[0]].dtype.kind in "iub":
                self._note(node.outputs[0], self._computed(node))

    def range_of(self, name: str) -> Range | None:
        """Return the range of a tensor; None where it has other numbers, or nobody knows which."""
        value = self._graph.kept_constants.get(name)
        if value is not None and name not in self._ranges and value.size > 0 and value.dtype.kind in "iub":
            array = self._graph.constants[name]
            self._note(name, Range(int(array.min()), int(array.max())))
        return self._ranges.get(name)

    def reads(self, node: Node, name: str) -> bool:
        """Tell whether a node may read or make a tensor of whole numbers or truth on a GPU."""
        if self.range_of(name) is not None:
            picks = node.op_type in ("Gather", "GatherElements") and name == node.inputs[1]
            return not picks or self._is_inside(node)
        if name not in self._given or node.op_type != "Elementwise":
            return False
        stem, kinds = kernel_of(node)
        return kinds == "i64_f32" or (node.outputs[0] in self._ranges and stem in (*_COMPARISONS, *_TESTS))

    def _is_same(self, name: str, source: str, picking: set[str]) -> bool:
        """Tell whether a view of an input has its numbers, each once; those of inputs that pick nothing are copied."""
        return source not in picking or self._graph.tensors[name].elements == self._graph.tensors[source].elements

    def _is_inside(self, node: Node) -> bool:
        """Tell whether all numbers at which a node picks lie inside the axis."""
        places = self.range_of(node.inputs[1])
        size = self._graph.shape(node.inputs[0])[int(number(node, "axis"))]
        return places is not None and -size <= places.least <= places.most < size

    def _note(self, name: str, found: Range | None) -> None:
        """Keep the range of a tensor, where floats and its type hold all of it."""
        if found is None:
            return
        dtype = self._graph.tensors[name].dtype
        limits = _TRUTH if dtype.kind == "b" else Range(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        if max(-self._most, limits.least) <= found.least and found.most <= min(self._most, limits.most):
            self._ranges[name] = found

    def _computed(self, node: Node) -> Range | None:
        if node.op_type == "Elementwise":
            return self._elementwise(node)
        if node.op_type == "ArgMost":
            return Range(0, self._graph.shape(node.inputs[0])[int(number(node, "axis"))] - 1)
        moved = node.inputs[: None if node.op_type == "Concat" else 1]
        ranges = [self.range_of(name) for name in moved]
        known = [one for one in ranges if one is not None]
        if len(known) < len(ranges) or not known:
            return None
        if node.op_type in _VIEWS:
            return _joined(known)
        if node.op_type == "CumSum":
            count = self._graph.shape(node.inputs[0])[int(number(node, "axis"))]
            return Range(min(0, known[0].least) * count, max(0, known[0].most) * count)
        return None

    def _elementwise(self, node: Node) -> Range | None:
        stem, kinds = kernel_of(node)
        ranges = [self.range_of(name) for name in node.inputs]
        known = [one for one in ranges if one is not None]
        if stem in (*_COMPARISONS, *_TESTS):
            # What a run gives may be too large for floats: it is rounded to something still larger than any range.
            others = [name for name, one in zip(node.inputs, ranges, strict=True) if one is None]
            whole = all(name in self._given for name in others) and (bool(known) or stem in _TESTS)
            return _TRUTH if kinds == "f32" or whole else None
        if len(known) < len(ranges):
            return None
        if stem in _LOGICAL:
            return _TRUTH if all(map(_is_truth, known)) else None
        if stem == "where":
            return _joined(known[1:])
        if stem == "cast":
            return known[0] if kinds == "i64_i64" else None
        return _bounds(_OPERATIONS[stem], *known) if stem in _OPERATIONS and len(known) > 1 else None


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "max": max,
    "min": min,
    "mul": int.__mul__,
    "sub": int.__sub__,
}
"""Kernels of two whole numbers, of which none is largest or least between the ends of both ranges."""


def bounds_to_try(graph: Graph, *, half: bool) -> Iterator[int | None]:
    """Yield bounds of what a run gives, none first, then ever smaller ones: sizes of what is picked from among them."""
    sizes = {
        graph.shape(node.inputs[0])[int(number(node, "axis"))] - 1
        for node in graph.nodes
        if node.op_type in ("Gather", "GatherElements")
    }
    yield None
    if any(info.dtype.kind in "iu" for info in graph.inputs):
        yield from sorted({_EXACT[half], *_BOUNDS, *sizes} - {0}, reverse=True)


def _picked_sizes(graph: Graph, views: dict[str, str]) -> dict[str, int]:
    """Return the inputs that pick places of one axis or more, with the size of the smallest: runs check them."""
    sizes: dict[str, int] = {}
    for node in graph.nodes:
        if node.op_type in ("Gather", "GatherElements") and reads_places(graph, views, node, node.inputs[1]):
            size = graph.shape(node.inputs[0])[int(number(node, "axis"))]
            source = views[node.inputs[1]]
            sizes[source] = min(size, sizes.get(source, size))
    return sizes


def kernel_of(node: Node) -> tuple[str, str]:
    """Return what an Elementwise node computes, and of which types."""
    stem, _, kinds = str(node.attributes["kernel"]).partition("_strided_")
    return stem, kinds


def _bounds(operation: Callable[[int, int], int], first: Range, second: Range) -> Range:
    ends = list(starmap(operation, product(first, second)))
    return Range(min(ends), max(ends))


def _joined(ranges: list[Range]) -> Range:
    return Range(min(one.least for one in ranges), max(one.most for one in ranges))


def _is_truth(one: Range) -> bool:
    return _TRUTH.least <= one.least <= one.most <= _TRUTH.most
