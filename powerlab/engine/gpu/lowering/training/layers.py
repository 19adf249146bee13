"""Gradients of activations, pools and local response normalisation."""

from __future__ import annotations

from typing import cast

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.lrn import lrn_numbers
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import slope_of

_MAXIMUM, _AVERAGE = range(2)


def lower_clamp_gradient(builder: Builder, node: Node) -> None:
    """Lower a ClampGradient."""
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    name, image = node.outputs[0], builder.image(node.outputs[0])
    if any(builder.in_blocks(one) for one in node.inputs):
        sources, made, count = [builder.blocks(one) for one in node.inputs], builder.new_blocks(name), image.vectors
    else:
        sources, made = [builder.rows(one) for one in node.inputs], builder.new_rows(name)
        count = -(-builder.graph.tensors[name].elements // 4)
    push = (count, float(low), float(high), slope_of(node))
    builder.emit_flat("clamp_gradient", node, (made, *sources), count, push=push)


def lower_max_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower a MaxPoolGradient."""
    _emit_pool(builder, node, _MAXIMUM, _window(node))


def lower_average_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower an AveragePoolGradient."""
    _emit_pool(builder, node, _AVERAGE, _window(node), int(number(node, "count_include_pad")))


def lower_global_average_pool_gradient(builder: Builder, node: Node) -> None:
    """Lower a GlobalAveragePoolGradient: that of one window."""
    made = builder.image(node.outputs[0])
    _emit_pool(builder, node, _AVERAGE, (made.height, made.width, 1, 1, 0, 0))


def lower_lrn_gradient(builder: Builder, node: Node) -> None:
    """Lower an LRNGradient."""
    x, sources = builder.image(node.inputs[0]), [builder.blocks(name) for name in node.inputs]
    out = builder.new_blocks(node.outputs[0])
    builder.emit_flat("lrn_gradient", node, (out, *sources), x.vectors, push=lrn_numbers(x, node))


def _window(node: Node) -> tuple[int, ...]:
    return (*integers(node, "kernel"), *integers(node, "strides"), *integers(node, "pads")[:2])


def _emit_pool(builder: Builder, node: Node, kind: int, window: tuple[int, ...], counts_pads: int = 0) -> None:
    """Append a pool's gradient: the last input is that of what the pool made, of a maximum the first what it read."""
    made, given = builder.image(node.outputs[0]), builder.image(node.inputs[-1])
    read, upstream = builder.blocks(node.inputs[0]), builder.blocks(node.inputs[-1])
    sizes = (made.images * made.blocks, made.height, made.width, given.height, given.width)
    builder.emit_flat(
        "pool_gradient",
        node,
        (builder.new_blocks(node.outputs[0]), read, upstream),
        made.vectors,
        constants=(kind,),
        push=(*sizes, *window, counts_pads),
    )
