"""Operators that move elements and compute nothing."""

from __future__ import annotations

import math

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.concat_in_place import joins_blocks
from powerlab.engine.codegen.views import lower_in_place, sliced
from powerlab.engine.ir.graph import IMAGE_AXES, Node
from powerlab.engine.program.layout import Layout, planar, shape4
from powerlab.engine.program.operand import compact_strides

_LEAST_AXES = 3
"""Images, channels, pixels."""


def lower_reshape(builder: Builder, node: Node) -> None:
    """Lower a Reshape: another view where images keep their size or follow on each other, else a copy."""
    if builder.is_whole(node.inputs[0]):
        sizes = builder.graph.shape(node.outputs[0])
        held = builder.general(node.inputs[0])
        builder.alias_general(node.outputs[0], replace(held, sizes=sizes, strides=compact_strides(sizes)))
        return
    before, after = (builder.graph.shape(name) for name in (node.inputs[0], node.outputs[0]))
    images = min(len(before), len(after)) >= _LEAST_AXES and before[:2] == after[:2]
    if images and builder.keeps_pixels(node.inputs[0], node.outputs[0]):
        return
    if builder.is_view(node.inputs[0]) and lower_in_place(builder, node):
        return
    x = builder.planar(node.inputs[0])
    shape = shape4(after)
    compact, padded = planar(shape, compact=True), planar(shape)
    if x.layout.n == shape[0]:
        builder.alias_planar(node.outputs[0], x.seen_as(replace(compact, image=x.layout.image)))
        return
    size = x.layout.c * x.layout.h * x.layout.w
    # One image, or images without gaps between them, are one row of elements.
    x_is_one_row = x.layout.n == 1 or x.layout.image == size
    out_is_one_row = shape[0] == 1 or padded == compact
    if x_is_one_row and padded == compact:
        builder.alias_planar(node.outputs[0], x.seen_as(padded))
        return
    if lower_in_place(builder, node):
        return
    out = builder.new_planar(node.outputs[0])
    if not x_is_one_row:
        whole = out if out_is_one_row else builder.in_arena(replace(compact, n=1, image=x.layout.n * size))
        builder.emit(
            "copy",
            node,
            whole.seen_as(_rows(x.layout.n, size, size)),
            x.seen_as(_rows(x.layout.n, size, x.layout.image)),
        )
        x = whole
    if x is not out:
        builder.emit(
            "copy",
            node,
            out.seen_as(_rows(shape[0], compact.image, padded.image)),
            x.seen_as(_rows(shape[0], compact.image, compact.image)),
        )


def lower_slice(builder: Builder, node: Node) -> None:
    """Lower a Slice: channels of blocks stay in blocks, all else is planar."""
    x, out = (builder.graph.shape(name) for name in (node.inputs[0], node.outputs[0]))
    starts, steps = integers(node, "starts"), integers(node, "steps")
    channels = len(x) == IMAGE_AXES and x[0] == out[0] and x[2:] == out[2:] and set(steps) == {1}
    if channels and builder.lies_in_blocks(node.inputs[0]):
        if builder.keeps_channels(node.inputs[0], node.outputs[0], starts[1]):
            return
        source = builder.blocked(node.inputs[0])
        builder.emit(
            "move_channels", node, builder.new_blocked(node.outputs[0]), source, numbers=[starts[1], 0, out[1]]
        )
        return
    if lower_in_place(builder, node):
        return
    whole = builder.general(node.inputs[0])
    if not _takes_images(builder, node):
        builder.copy(node, builder.new_general(node.outputs[0]), sliced(whole, node, out))


def _takes_images(builder: Builder, node: Node) -> bool:
    """Let a Slice of whole images that follow on each other be a part of the tensor itself; return whether it is."""
    name, output = node.inputs[0], node.outputs[0]
    before, after = builder.graph.shape(name), builder.graph.shape(output)
    if not builder.is_planar(name) or len(before) < 2 or before[1:] != after[1:] or set(integers(node, "steps")) != {1}:
        return False
    x = builder.planar(name)
    part = replace(x.layout, n=after[0])
    builder.alias_planar(output, x.seen_as(part, integers(node, "starts")[0] * x.layout.image))
    return True


def lower_concat(builder: Builder, node: Node) -> None:
    """Lower a Concat: where channels of blocks are joined they stay in blocks, all else is planar."""
    shape = builder.graph.shape(node.outputs[0])
    axis = int(number(node, "axis")) % len(shape)
    in_blocks = any(builder.is_blocked(name) for name in node.inputs)
    if in_blocks and joins_blocks(builder.graph, node, builder.tier.vector_width):
        _concat_blocks(builder, node)
        return
    if axis == 1 and len(shape) == IMAGE_AXES and all(builder.lies_in_blocks(name) for name in node.inputs):
        _concat_channels(builder, node)
        return
    if builder.is_whole(node.outputs[0]):
        _concat_general(builder, node, axis)
        return
    out = builder.new_planar(node.outputs[0])
    outer_dimensions = shape[1:axis] if axis else ()
    outer = math.prod(outer_dimensions)
    plane = out.layout.c * out.layout.h * out.layout.w // outer
    at = 0
    for name in node.inputs:
        x = builder.planar(name)
        size = x.layout.c * x.layout.h * x.layout.w // outer
        if axis == 0 and len(shape) > 1:
            part = Layout(x.layout.n, 1, 1, size, 1, 1, size, size, out.layout.image)
            builder.emit(
                "copy", node, out.seen_as(part, at * out.layout.image), x.seen_as(replace(part, image=x.layout.image))
            )
            at += x.layout.n
        else:
            part = Layout(out.layout.n, outer, 1, size, outer, 1, size, plane, out.layout.image)
            builder.emit(
                "copy", node, out.seen_as(part, at), x.seen_as(replace(part, plane=size, image=x.layout.image))
            )
            at += size


def _concat_general(builder: Builder, node: Node, axis: int) -> None:
    out, at = builder.new_general(node.outputs[0]), 0
    for name in node.inputs:
        x = builder.general(name)
        builder.copy(node, out.sliced(axis, at, x.sizes[axis]), x)
        at += x.sizes[axis]


def _concat_blocks(builder: Builder, node: Node) -> None:
    """Copy into the whole what does not lie there already."""
    out = builder.new_blocked(node.outputs[0])
    first_block = 0
    for name in node.inputs:
        x = builder.blocked(name)
        layout = replace(out.layout, c=x.layout.c, blocks=x.layout.blocks)
        part = out.seen_as(layout, first_block * out.layout.plane)
        if x != part:
            builder.emit("copy", node, part, x)
        first_block += x.layout.blocks


def _concat_channels(builder: Builder, node: Node) -> None:
    """Move channels to where they belong in the blocks of the whole."""
    out, first = builder.new_blocked(node.outputs[0]), 0
    for name in node.inputs:
        x = builder.blocked(name)
        builder.emit("move_channels", node, out, x, numbers=[0, first, x.layout.c])
        first += x.layout.c


def _rows(count: int, size: int, stride: int) -> Layout:
    return Layout(count, 1, 1, size, 1, 1, size, size, stride)
