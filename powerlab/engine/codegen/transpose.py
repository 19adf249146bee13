"""Transposes: a copy between strides, of whole rows where the last axis stays the last."""

from __future__ import annotations

import math

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.views import lower_in_place
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import Layout
from powerlab.engine.program.operand import Element, Operand

ROWS_AXES = 4
"""The most axes longer than 1 that a copy of rows takes."""

_LEAST_AXES = 3
"""Images, channels, pixels."""


def lower_transpose(builder: Builder, node: Node) -> None:
    """Lower a Transpose."""
    if lower_in_place(builder, node):
        return
    if _takes_channels_back(builder, node):
        builder.put_channels_last(node.inputs[0], node.outputs[0])
        return
    if _puts_channels_first(builder, node):
        builder.put_channels_first(node.inputs[0], node.outputs[0])
        return
    if _puts_channels_last(builder, node):
        _copy_blocks(builder, node)
        return
    if _moves_rows(builder, node):
        _copy_rows(builder, node)
        return
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    builder.copy(node, out, x.permuted(integers(node, "perm")))


def _takes_channels_back(builder: Builder, node: Node) -> bool:
    """Tell whether the second axis, which lies last in memory, becomes the last one again."""
    order = integers(node, "perm")
    return builder.is_channels_last(node.inputs[0]) and order == (0, *range(2, len(order)), 1)


def _puts_channels_first(builder: Builder, node: Node) -> bool:
    """Tell whether the last axis of what lies in no blocks becomes the second one, all others keeping their order."""
    order, name = integers(node, "perm"), node.inputs[0]
    if len(order) < _LEAST_AXES or builder.is_whole(name) or builder.is_blocked(name) or builder.is_view(name):
        return False
    if builder.is_channels_last(name) and not builder.is_planar(name):
        return False
    return order == (0, len(order) - 1, *range(1, len(order) - 1))


def _puts_channels_last(builder: Builder, node: Node) -> bool:
    """Tell whether the second axis of what lies in blocks alone becomes the last one."""
    order, name = integers(node, "perm"), node.inputs[0]
    if len(order) < _LEAST_AXES or not builder.is_blocked(name) or builder.is_planar(name):
        return False
    return order == (0, *range(2, len(order)), 1)


def _copy_blocks(builder: Builder, node: Node) -> None:
    """Copy the channels of each pixel, block by block: first those that fill whole blocks, then the rest."""
    x, out = builder.blocked(node.inputs[0]), builder.new_planar(node.outputs[0])
    width, layout = builder.tier.vector_width, x.layout
    whole, rest = divmod(layout.c, width)
    for first, blocks, lanes in ((0, whole, width), (whole, 1, rest)):
        if blocks and lanes:
            sizes = (layout.n, blocks, layout.h, layout.w, lanes)
            read = (layout.image, layout.plane, layout.row, layout.pixel, 1)
            written = (out.layout.image, width, layout.w * layout.c, layout.c, 1)
            start = x.offset + layout.start + first * layout.plane
            builder.copy(
                node,
                Operand(out.storage, Element.FLOAT, sizes, written, out.offset + first * width),
                Operand(x.storage, Element.FLOAT, sizes, read, start),
            )


def _moves_rows(builder: Builder, node: Node) -> bool:
    """Tell whether whole rows of floats keep together.

    The elements of the first axis may lie apart, before and after: they make no row.
    """
    shape, order = builder.graph.shape(node.inputs[0]), integers(node, "perm")
    moved = [axis for axis in order if shape[axis] > 1]
    if not moved or len(moved) > ROWS_AXES or builder.is_whole(node.inputs[0]) or builder.is_view(node.inputs[0]):
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
