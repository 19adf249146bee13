"""Batch norms that take the batch's statistics, sums of channels, and gradients of activations and pools."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import clamp_fields, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.elementwise import emit_alike
from powerlab.engine.codegen.lrn_softmax import lrn_fields
from powerlab.engine.codegen.pool import window_fields
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import blocked, shape4
from powerlab.engine.program.operand import Element, Operand
from powerlab.engine.program.program import Tensor


def lower_batch_norm(builder: Builder, node: Node) -> None:
    """Lower a BatchNorm."""
    operands = [*_a_channel(builder, node), *(builder.general(name) for name in node.inputs[1:])]
    builder.emit_gradient(
        "batch_norm",
        node,
        builder.blocked(node.inputs[0]),
        out=builder.new_blocked(node.outputs[0]),
        operands=operands,
        alpha=number(node, "epsilon"),
        beta=number(node, "momentum"),
        **clamp_fields(node),
    )


def lower_batch_norm_gradient(builder: Builder, node: Node) -> None:
    """Lower a BatchNormGradient."""
    operands = [*_a_channel(builder, node), *(builder.general(name) for name in node.inputs[2:6])]
    x, gradient = (builder.blocked(name) for name in node.inputs[:2])
    operands += [_rows(builder.blocked(name)) for name in node.inputs[6:]]
    name = node.outputs[0]
    out = (
        builder.new_blocked(name)
        if name
        else builder.in_arena(blocked(shape4(builder.graph.shape(node.inputs[0])), builder.tier.vector_width))
    )
    builder.emit_gradient("batch_norm_gradient", node, x, gradient, out=out, operands=operands, **clamp_fields(node))


def _a_channel(builder: Builder, node: Node) -> list[Operand]:
    """Return room for the results of a node that are one number a channel; some may have no reader and no name."""
    channels = builder.graph.shape(node.inputs[0])[1:2]
    return [builder.new_general(name) if name else builder.room(channels) for name in node.outputs[1:]]


def _rows(x: Tensor) -> Operand:
    """Return images in blocks as a general tensor: [image][block][row][pixel and channel]."""
    layout = x.layout
    sizes, strides = (
        (layout.n, layout.blocks, layout.h, layout.w * layout.pixel),
        (layout.image, layout.plane, layout.row),
    )
    return Operand(x.storage, Element.FLOAT, sizes, (*strides, 1), x.offset + layout.start)


def lower_channel_sums(builder: Builder, node: Node) -> None:
    """Lower a ChannelSums."""
    x = builder.blocked(node.inputs[0])
    builder.emit_gradient("channel_sums", node, x, operands=(builder.new_general(node.outputs[0]),))


def lower_clamp_gradient(builder: Builder, node: Node) -> None:
    """Lower a ClampGradient."""
    emit_alike(builder, node, "clamp_gradient", **clamp_fields(node))


def lower_lrn_gradient(builder: Builder, node: Node) -> None:
    """Lower an LRNGradient."""
    x, gradient = (builder.blocked(name) for name in node.inputs)
    builder.emit("lrn_gradient", node, builder.new_blocked(node.outputs[0]), x, gradient, **lrn_fields(node))


def lower_max_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower a MaxPoolGradient."""
    x, gradient = (builder.blocked(name) for name in node.inputs)
    builder.emit("pool_max_gradient", node, builder.new_blocked(node.outputs[0]), x, gradient, **window_fields(node))


def lower_average_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower an AveragePoolGradient."""
    gradient, out = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0])
    count = int(number(node, "count_include_pad"))
    builder.emit("pool_average_gradient", node, out, gradient, gradient, count_padding=count, **window_fields(node))


def lower_global_average_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower a GlobalAveragePoolGradient."""
    gradient = builder.blocked(node.inputs[0])
    builder.emit("pool_global_average_gradient", node, builder.new_blocked(node.outputs[0]), gradient, gradient)
