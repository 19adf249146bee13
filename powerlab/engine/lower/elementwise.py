"""Operators that treat each element by itself: they work in whatever layout their operands already have."""

from __future__ import annotations

from powerlab.engine.graph import Node
from powerlab.engine.layout import Layout, divide_up, shape4
from powerlab.engine.lower.attributes import clamp_fields
from powerlab.engine.lower.builder import Builder
from powerlab.engine.pack import fill_channels


def lower_add(builder: Builder, node: Node) -> None:
    """Lower an Add of two tensors of one shape."""
    left, right = node.inputs[:2]
    if prefers_blocks(builder, node):
        x, y = builder.blocked(left), builder.blocked(right)
        builder.emit("add", node, builder.new_blocked(node.outputs[0]), x, y, **clamp_fields(node))
        return
    x, y, out = builder.planar(left), builder.planar(right), builder.new_planar(node.outputs[0])
    width = builder.tier.vector_width
    out, x, y = (tensor.seen_as(vectors(tensor.layout, width)) for tensor in (out, x, y))
    builder.emit("add", node, out, x, y, **clamp_fields(node))


def lower_clamp(builder: Builder, node: Node) -> None:
    """Lower a Clamp."""
    if prefers_blocks(builder, node):
        x = builder.blocked(node.inputs[0])
        builder.emit("clamp", node, builder.new_blocked(node.outputs[0]), x, **clamp_fields(node))
        return
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    width = builder.tier.vector_width
    out, x = (tensor.seen_as(vectors(tensor.layout, width)) for tensor in (out, x))
    builder.emit("clamp", node, out, x, **clamp_fields(node))


def lower_scale_shift(builder: Builder, node: Node) -> None:
    """Lower a ScaleShift: one factor and one summand a channel."""
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    channels, blocks, width = out.layout.c, out.layout.blocks, builder.tier.vector_width
    scale = fill_channels(builder.constant(node.inputs[1]), channels, blocks, width)
    shift = fill_channels(builder.constant(node.inputs[2]), channels, blocks, width)
    builder.emit("scale_shift", node, out, x, weights=scale, bias=shift, **clamp_fields(node))


def prefers_blocks(builder: Builder, node: Node) -> bool:
    """Tell whether to work in blocks: an operand lies so, or the result is going to be wanted so."""
    return any(builder.is_blocked(name) for name in node.inputs) or shape4(builder.graph.shape(node.outputs[0]))[
        2:
    ] != (
        1,
        1,
    )


def vectors(layout: Layout, width: int) -> Layout:
    """Return a planar layout as one row of whole vectors an image; the last may reach into the filling."""
    vectors = divide_up(layout.c * layout.h * layout.w, width)
    return Layout(layout.n, width, 1, vectors, 1, width, vectors * width, vectors * width, layout.image)
