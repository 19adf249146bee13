"""Moves of general tensors: each is a copy between two views."""

from __future__ import annotations

from dataclasses import replace

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


def lower_spread(builder: Builder, node: Node) -> None:
    """Lower a Spread: fill the whole with its second input, then put the first in, its elements ``steps`` apart."""
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    builder.copy(node, out, builder.general(node.inputs[1]).first())
    inner = out
    for axis, (before, step) in enumerate(zip(integers(node, "before"), integers(node, "steps"), strict=True)):
        inner = inner.sliced(axis, before, x.sizes[axis], step)
    builder.copy(node, inner, x)


def lower_windows(builder: Builder, node: Node) -> None:
    """Lower Windows: each axis of what it makes walks along an axis of its input, by so many elements a step."""
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    starts = zip(x.strides, integers(node, "starts"), strict=True)
    steps = zip(integers(node, "axes"), integers(node, "steps"), strict=True)
    strides = tuple(x.strides[axis] * step for axis, step in steps)
    offset = x.offset + sum(stride * start for stride, start in starts)
    builder.copy(node, out, replace(x, sizes=out.sizes, strides=strides, offset=offset))
