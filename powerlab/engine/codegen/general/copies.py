"""Moves of general tensors: each is a copy between two views."""

from __future__ import annotations

import math

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand


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
    """Lower a Pad: fill what lies around the tensor, or the whole where that is most of it, and put the tensor in."""
    x, filling = builder.general(node.inputs[0]), builder.general(node.inputs[1]).first()
    whole = builder.new_general(node.outputs[0])
    inner, around = whole, list[Operand]()
    for axis, before in enumerate(integers(node, "before")):
        end = before + x.sizes[axis]
        around += (inner.sliced(axis, first, size) for first, size in ((0, before), (end, inner.sizes[axis] - end)))
        inner = inner.sliced(axis, before, x.sizes[axis])
    mostly = math.prod(whole.sizes) > 2 * math.prod(x.sizes)
    for part in [whole] if mostly else around:
        if math.prod(part.sizes):
            builder.copy(node, part, filling)
    builder.copy(node, inner, x)
