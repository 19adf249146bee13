"""Transposes: a copy between strides, of whole rows where the last axis stays the last."""

from __future__ import annotations

import math

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import Layout

ROWS_AXES = 4
"""The most axes longer than 1 that a copy of rows takes."""


def lower_transpose(builder: Builder, node: Node) -> None:
    """Lower a Transpose."""
    if _moves_rows(builder, node):
        _copy_rows(builder, node)
        return
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    builder.copy(node, out, x.permuted(integers(node, "perm")))


def _moves_rows(builder: Builder, node: Node) -> bool:
    """Tell whether whole rows of floats keep together.

    The elements of the first axis may lie apart, before and after: they make no row.
    """
    shape, order = builder.graph.shape(node.inputs[0]), integers(node, "perm")
    moved = [axis for axis in order if shape[axis] > 1]
    if not moved or len(moved) > ROWS_AXES or builder.is_whole(node.inputs[0]):
        return False
    row = moved[-1]
    return row == max(moved) and row != 0 != order.index(row)


def _copy_rows(builder: Builder, node: Node) -> None:
    name, output = node.inputs[0], node.outputs[0]
    shape, made = builder.graph.shape(name), builder.graph.shape(output)
    x, out = builder.planar(name), builder.new_planar(output)
    read, written = _strides(shape, x.layout.image), _strides(made, out.layout.image)
    axes = [(shape[axis], read[axis], written[at]) for at, axis in enumerate(integers(node, "perm")) if shape[axis] > 1]
    *outer, (row, _, _) = axes
    while len(outer) < 3:
        outer.insert(0, (1, 0, 0))
    sizes, from_strides, to_strides = zip(*outer, strict=True)
    builder.emit("copy", node, out.seen_as(_rows(sizes, to_strides, row)), x.seen_as(_rows(sizes, from_strides, row)))


def _strides(shape: tuple[int, ...], image: int) -> list[int]:
    """Return how far apart the elements of each axis lie in the planar layout."""
    return [image if axis == 0 else math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _rows(sizes: tuple[int, ...], strides: tuple[int, ...], row: int) -> Layout:
    return Layout(sizes[0], sizes[1], sizes[2], row, sizes[1], 1, strides[2], strides[1], strides[0])
