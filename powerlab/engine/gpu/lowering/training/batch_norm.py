"""Batch norms that take the batch's statistics, and what they give back."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.activations import finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.pointwise import SCALE_SHIFT
from powerlab.engine.gpu.lowering.training.sums import OF_PRODUCTS, OF_SQUARES, emit_channel_sums
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage


def lower_batch_norm(builder: Builder, node: Node) -> None:
    """Lower a BatchNorm: its sums, what they say of each channel, and the images by that."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    sums, parts = emit_channel_sums(builder, node, OF_SQUARES, x, (source, source, source))
    factor, summand = (builder.room(4 * x.blocks) for _ in range(2))
    made = [_a_channel(builder, name, x.channels) for name in node.outputs[1:]]
    read = [builder.rows(name) for name in node.inputs[1:]]
    numbers = (number(node, "epsilon"), number(node, "momentum"))
    builder.emit_flat(
        "batch_norm_end",
        node,
        (factor, summand, *made, sums, source, *read),
        4 * x.blocks,
        push=(x.channels, x.pixels, x.images * x.pixels, parts, *numbers),
        written=2 + len(made),
    )
    function, ends = finish_of(node)
    builder.emit_flat(
        "pointwise",
        node,
        (builder.new_blocks(node.outputs[0]), source, source, factor, summand),
        x.vectors,
        constants=(function, SCALE_SHIFT),
        push=(*ends, x.vectors, x.pixels, x.blocks),
    )


def lower_batch_norm_gradient(builder: Builder, node: Node) -> None:
    """Lower a BatchNormGradient, likewise."""
    x, (source, given) = builder.image(node.inputs[0]), (builder.blocks(name) for name in node.inputs[:2])
    scale, mean, inverse = (builder.rows(node.inputs[index]) for index in (2, 4, 5))
    sums, parts = emit_channel_sums(builder, node, OF_PRODUCTS, x, (source, given, mean))
    numbers = builder.room(4 * 4 * x.blocks)
    of_scale, of_shift = (_a_channel(builder, name, x.channels) for name in node.outputs[1:])
    builder.emit_flat(
        "batch_norm_gradient_end",
        node,
        (numbers, of_scale, of_shift, sums, scale, mean, inverse),
        4 * x.blocks,
        push=(x.channels, x.images * x.pixels, parts),
        written=3,
    )
    if node.outputs[0]:
        builder.emit_flat(
            "batch_norm_gradient",
            node,
            (builder.new_blocks(node.outputs[0]), source, given, numbers),
            x.vectors,
            push=(x.vectors, x.pixels, x.blocks),
        )


def _a_channel(builder: Builder, name: str, channels: int) -> Storage:
    """Return room for a number a channel, which may have no reader and no name."""
    return builder.new_rows(name) if name else builder.room(channels)
