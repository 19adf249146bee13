"""Operators that treat each element by itself: they work in whatever layout their operands already have."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.ir.graph import IMAGE_AXES, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.program.layout import Layout, divide_up

_MOST_ROWS = 64
"""Many enough for any threads to have about as much to do each, and long enough to be worth a call."""


def lower_add(builder: Builder, node: Node) -> None:
    """Lower an Add of two tensors of one shape."""
    emit_alike(builder, node, "add", **clamp_fields(node))


def lower_clamp(builder: Builder, node: Node) -> None:
    """Lower a Clamp."""
    emit_alike(builder, node, "clamp", **clamp_fields(node))


def lower_multiply(builder: Builder, node: Node) -> None:
    """Lower a Multiply: of two tensors of one shape, or of an image with one number a channel."""
    shapes = {builder.graph.shape(name) for name in node.inputs}
    emit_alike(builder, node, "multiply", in_blocks=len(shapes) > 1, **clamp_fields(node))


def emit_alike(builder: Builder, node: Node, family: str, *, in_blocks: bool = False, **fields: Any) -> None:
    """Emit a kernel over one or two tensors in the layout that they have; ``in_blocks`` asks for the blocked one."""
    if in_blocks or _prefers_blocks(builder, node):
        operands = [builder.blocked(name) for name in node.inputs]
        builder.emit(family, node, builder.new_blocked(node.outputs[0]), *operands, **fields)
        return
    planar = [builder.planar(name) for name in node.inputs]
    width = builder.tier.vector_width
    out, *operands = (
        tensor.seen_as(_vectors(tensor.layout, width)) for tensor in (builder.new_planar(node.outputs[0]), *planar)
    )
    builder.emit(family, node, out, *operands, **fields)


def lower_scale_shift(builder: Builder, node: Node) -> None:
    """Lower a ScaleShift: one factor and one summand a channel."""
    if builder.is_planar(node.inputs[0]) and not builder.is_blocked(node.inputs[0]) and is_linear(node):
        _scale_planes(builder, node)
        return
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    channels, blocks, width = out.layout.c, out.layout.blocks, builder.tier.vector_width
    scale = fill_channels(builder.constant(node.inputs[1]), channels, blocks, width)
    shift = fill_channels(builder.constant(node.inputs[2]), channels, blocks, width)
    builder.emit("scale_shift", node, out, x, weights=scale, bias=shift, **clamp_fields(node))


def _scale_planes(builder: Builder, node: Node) -> None:
    """Multiply and add where the tensor lies: a way into blocks and back would cost more than it saves."""
    x = builder.general(node.inputs[0])
    neutral = {"mul": 1.0, "add": 0.0}
    values = dict(zip(neutral, node.inputs[1:], strict=True))
    stems = [stem for stem, name in values.items() if np.any(builder.constant(name) != neutral[stem])] or ["mul"]
    for stem in stems:
        a_channel = builder.general(values[stem]).split(0, (x.sizes[1], *(1,) * (len(x.sizes) - 2)))
        out = builder.new_general(node.outputs[0]) if stem == stems[-1] else builder.room(x.sizes)
        builder.emit_each(f"{stem}_strided_f32", node, out, x, a_channel, numbers=(0, 0, 0, 0))
        x = out


def _prefers_blocks(builder: Builder, node: Node) -> bool:
    """Tell whether to work in blocks: an operand lies so, or nothing lies anywhere and the result may be wanted so."""
    if any(builder.is_blocked(name) for name in node.inputs):
        return True
    if any(builder.is_planar(name) for name in node.inputs):
        return False
    shape = builder.graph.shape(node.outputs[0])
    return len(shape) == IMAGE_AXES and shape[2:] != (1, 1)


def _vectors(layout: Layout, width: int) -> Layout:
    """Return a planar layout as rows of whole vectors, which threads share; the last may reach into the filling."""
    vectors = divide_up(layout.c * layout.h * layout.w, width)
    rows = next(count for count in range(min(_MOST_ROWS, vectors), 0, -1) if vectors % count == 0)
    row = vectors // rows * width
    return Layout(layout.n, width, rows, vectors // rows, 1, width, row, vectors * width, layout.image)
