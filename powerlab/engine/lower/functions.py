"""Functions of one number and products: they work in whatever layout their operands already have."""

from __future__ import annotations

from typing import Any

from powerlab.engine.graph import Node
from powerlab.engine.lower.attributes import clamp_fields, number
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.elementwise import prefers_blocks, vectors

KERNELS = {
    "Elu": "elu",
    "Erf": "erf",
    "Exp": "exp",
    "Gelu": "gelu",
    "HardSigmoid": "hard_sigmoid",
    "HardSwish": "hard_swish",
    "Sigmoid": "sigmoid",
    "Silu": "silu",
    "Tanh": "tanh",
}
"""Operator → family of kernels."""


def lower_function(builder: Builder, node: Node) -> None:
    """Lower a function of one number."""
    numbers: dict[str, Any] = {name: number(node, name) for name in node.attributes}
    if prefers_blocks(builder, node):
        x = builder.blocked(node.inputs[0])
        builder.emit(KERNELS[node.op_type], node, builder.new_blocked(node.outputs[0]), x, **numbers)
        return
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    width = builder.tier.vector_width
    out, x = (tensor.seen_as(vectors(tensor.layout, width)) for tensor in (out, x))
    builder.emit(KERNELS[node.op_type], node, out, x, **numbers)


def lower_multiply(builder: Builder, node: Node) -> None:
    """Lower a Multiply: of two tensors of one shape, or of an image with one number a channel."""
    left, right = node.inputs
    per_channel = builder.graph.shape(left) != builder.graph.shape(right)
    if per_channel or prefers_blocks(builder, node):
        x, y = builder.blocked(left), builder.blocked(right)
        builder.emit("multiply", node, builder.new_blocked(node.outputs[0]), x, y, **clamp_fields(node))
        return
    x, y, out = builder.planar(left), builder.planar(right), builder.new_planar(node.outputs[0])
    width = builder.tier.vector_width
    out, x, y = (tensor.seen_as(vectors(tensor.layout, width)) for tensor in (out, x, y))
    builder.emit("multiply", node, out, x, y, **clamp_fields(node))
