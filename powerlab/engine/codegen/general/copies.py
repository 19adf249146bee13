"""Moves of general tensors: each is a copy between two views."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_expand(builder: Builder, node: Node) -> None:
    """Lower an Expand."""
    builder.copy(node, builder.new_general(node.outputs[0]), builder.general(node.inputs[0]))


def lower_tile(builder: Builder, node: Node) -> None:
    """Lower a Tile: each axis is two, of which the outer one repeats."""
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    for axis, count in reversed(list(enumerate(integers(node, "repeats")))):
        size = x.sizes[axis]
        out = out.split(axis, (count, size))
        x = x.split(axis, (1, size))
    builder.copy(node, out, x)


def lower_pad(builder: Builder, node: Node) -> None:
    """Lower a Pad: fill the whole, then put the tensor into it."""
    x, filling = builder.general(node.inputs[0]), builder.general(node.inputs[1])
    out = builder.new_general(node.outputs[0])
    builder.copy(node, out, filling.first())
    inner = out
    for axis, before in enumerate(integers(node, "before")):
        inner = inner.sliced(axis, before, x.sizes[axis])
    builder.copy(node, inner, x)
