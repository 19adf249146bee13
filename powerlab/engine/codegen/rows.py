"""Operators that take whole rows, runs along the last axes: normalisations, softmax and its relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.lrn_softmax import lower_softmax as lower_softmax_across
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, compact_strides, joined


def lower_row_norm(builder: Builder, node: Node) -> None:
    """Lower a RowNorm."""
    vectors = [_in_a_run(builder, node, builder.general(name), 0) for name in node.inputs[1:] if name]
    flat = [replace(one, sizes=(math.prod(one.sizes),), strides=(1,)) for one in vectors]
    _emit(builder, node, f"{node.attributes['kernel']}_f32", flat, alpha=number(node, "epsilon"))


def lower_channel_norm(builder: Builder, node: Node) -> None:
    """Lower a ChannelNorm: a normalisation over the channels of each pixel, in blocks."""
    x, out = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0])
    channels, blocks, width = out.layout.c, out.layout.blocks, builder.tier.vector_width
    scale, shift = (builder.optional_constant(node.input(index)) for index in (1, 2))
    scale = np.ones(channels, np.float32) if scale is None else scale.reshape(-1)
    builder.emit(
        f"channel_{node.attributes['kernel']}",
        node,
        out,
        x,
        weights=fill_channels(scale, channels, blocks, width),
        bias=fill_channels(None if shift is None else shift.reshape(-1), channels, blocks, width),
        alpha=number(node, "epsilon"),
    )


def lower_softmax(builder: Builder, node: Node) -> None:
    """Lower a Softmax over any axis."""
    if _is_last(builder, node):
        _emit(builder, node, "softmax_rows_f32", numbers=(int(bool(node.attributes.get("masked", 0))),))
    else:
        lower_softmax_across(builder, node)


def lower_log_softmax(builder: Builder, node: Node) -> None:
    """Lower a LogSoftmax over the last axis."""
    _emit(builder, node, "log_softmax_rows_f32")


def lower_hardmax(builder: Builder, node: Node) -> None:
    """Lower a Hardmax over the last axis."""
    _emit(builder, node, "hardmax_rows_f32")


def _is_last(builder: Builder, node: Node) -> bool:
    shape, axis = builder.graph.shape(node.outputs[0]), int(number(node, "axis"))
    return math.prod(shape[axis + 1 :]) == 1


def _emit(
    builder: Builder,
    node: Node,
    family: str,
    vectors: Sequence[Operand] = (),
    *,
    numbers: Sequence[int] = (),
    alpha: float = 0.0,
) -> None:
    """Append a step over rows; the rows are made to follow on each other where they do not."""
    axis = int(number(node, "axis"))
    x, out = _in_a_run(builder, node, builder.general(node.inputs[0]), axis), builder.new_general(node.outputs[0])
    made = out if _has_rows(out, axis) else builder.room(out.sizes)
    builder.emit_general(family, node, (*_as_rows((made, x), axis), *vectors), numbers, alpha=alpha)
    if made is not out:
        builder.copy(f"{node.name or node.outputs[0]} out", out, made)


def _in_a_run(builder: Builder, node: Node, operand: Operand, axis: int) -> Operand:
    """Return an operand whose axes from ``axis`` on are one run: a copy where they are not."""
    if _has_rows(operand, axis):
        return operand
    whole = builder.room(operand.sizes)
    builder.copy(f"{node.name or node.outputs[0]} rows", whole, operand)
    return whole


def _has_rows(operand: Operand, axis: int) -> bool:
    """Say whether what lies along the axes from ``axis`` on is one run."""
    sizes = operand.sizes[axis:]
    return all(
        size == 1 or stride == wanted
        for size, stride, wanted in zip(sizes, operand.strides[axis:], compact_strides(sizes), strict=True)
    )


def _as_rows(operands: Sequence[Operand], axis: int) -> tuple[Operand, ...]:
    """Return operands with as few axes as possible before the last, which is the row."""
    before = joined(
        [replace(one, sizes=one.sizes[:axis] or (1,), strides=one.strides[:axis] or (0,)) for one in operands]
    )
    return tuple(
        replace(one, sizes=(*rows.sizes, math.prod(one.sizes[axis:])), strides=(*rows.strides, 1))
        for one, rows in zip(operands, before, strict=True)
    )
