"""Elements picked from and put to places that integers name."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.boxes import assigned_box, is_all
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, joined

_MAKES_GENERAL = ("Expand", "ScatterElements", "ScatterND")
"""Operators that write a general tensor of their own, of which nothing else is a view."""

_HOW = 16
"""What multiplies the kind of an update in the kernel's number[3]."""


def lower_gather(builder: Builder, node: Node) -> None:
    """Lower a Gather: one axis of the data becomes those of the indices."""
    x, index = builder.general(node.inputs[0]), builder.general(node.inputs[1])
    out, axis = builder.new_general(node.outputs[0]), int(number(node, "axis"))
    added, behind = len(index.sizes), len(x.sizes) - axis - 1
    data = _seen(x, out, (*x.strides[:axis], *(0,) * added, *x.strides[axis + 1 :]))
    places = _seen(index, out, (*(0,) * axis, *index.strides, *(0,) * behind))
    _take(builder, node, (out, data, places), _axes(x, axis, axis + 1), 0)


def lower_gather_elements(builder: Builder, node: Node) -> None:
    """Lower a GatherElements; indices of fewer elements are broadcast."""
    x, index = builder.general(node.inputs[0]), builder.general(node.inputs[1])
    out, axis = builder.new_general(node.outputs[0]), int(number(node, "axis"))
    data = _seen(x, out, tuple(0 if at == axis else stride for at, stride in enumerate(x.strides)))
    _take(builder, node, (out, data, index.broadcast(out.sizes)), _axes(x, axis, axis + 1), 0)


def lower_gather_nd(builder: Builder, node: Node) -> None:
    """Lower a GatherND: the last axis of the indices holds one for each axis of the data."""
    x, index = builder.general(node.inputs[0]), builder.general(node.inputs[1])
    out, batch = builder.new_general(node.outputs[0]), int(number(node, "batch_dims"))
    named = batch + index.sizes[-1]
    between = len(index.sizes) - 1 - batch
    data = _seen(x, out, (*x.strides[:batch], *(0,) * between, *x.strides[named:]))
    places = _seen(index, out, (*index.strides[:-1], *(0,) * (len(x.sizes) - named)))
    _take(builder, node, (out, data, places), _axes(x, batch, named), index.strides[-1])


def lower_scatter_elements(builder: Builder, node: Node) -> None:
    """Lower a ScatterElements: threads share the axes that are not indexed; indices of fewer elements are broadcast."""
    out = _updated(builder, node)
    index, updates = (builder.general(name) for name in node.inputs[1:])
    index = index.broadcast(updates.sizes)
    axis = int(number(node, "axis"))
    target = _seen(out, updates, tuple(0 if at == axis else stride for at, stride in enumerate(out.strides)))
    order = (*(at for at in range(len(out.sizes)) if at != axis), axis)
    operands = tuple(one.permuted(order) for one in (target, updates, index))
    _put(builder, node, operands, _axes(out, axis, axis + 1), apart=0, shared=len(order) - 1)


def lower_scatter_nd(builder: Builder, node: Node) -> None:
    """Lower a ScatterND: threads share the axes behind those that are indexed.

    Where the places are a box of the data, a copy fills it; where they are all of it, nobody reads what was there.
    """
    data = builder.general(node.inputs[0])
    box = assigned_box(builder.graph, node, data)
    if box is not None and is_all(box, data):
        builder.copy(node, builder.new_general(node.outputs[0]), builder.general(node.inputs[2]))
        return
    out = _updated(builder, node)
    box = assigned_box(builder.graph, node, out)
    if box is not None:
        builder.copy(node, box, builder.general(node.inputs[2]))
        return
    index, updates = (builder.general(name) for name in node.inputs[1:])
    named, tuples = index.sizes[-1], len(index.sizes) - 1
    target = _seen(out, updates, (*(0,) * tuples, *out.strides[named:]))
    places = _seen(index, updates, (*index.strides[:-1], *(0,) * (len(out.sizes) - named)))
    order = (*range(tuples, len(updates.sizes)), *range(tuples))
    operands = tuple(one.permuted(order) for one in (target, updates, places))
    shared = len(updates.sizes) - tuples
    _put(builder, node, operands, _axes(out, 0, named), apart=index.strides[-1], shared=shared)


def _seen(operand: Operand, like: Operand, strides: tuple[int, ...]) -> Operand:
    """Return an operand over the sizes of another."""
    return replace(operand, sizes=like.sizes, strides=strides)


def _axes(operand: Operand, begin: int, end: int | None) -> Operand:
    """Return some axes of an operand, alone."""
    return replace(operand, sizes=operand.sizes[begin:end], strides=operand.strides[begin:end])


def _take(builder: Builder, node: Node, operands: tuple[Operand, ...], indexed: Operand, apart: int) -> None:
    walked = joined(operands)
    builder.emit_general(f"take_{operands[0].element.suffix}", node, (*walked, indexed), (apart,))


def _updated(builder: Builder, node: Node) -> Operand:
    """Return the data that is to be updated: a copy, or the data itself where nobody else reads it."""
    graph, data, out = builder.graph, node.inputs[0], node.outputs[0]
    maker = graph.producers().get(data)
    own = maker is not None and maker.op_type in _MAKES_GENERAL and data not in graph.output_names()
    if own and graph.consumers()[data] == [node]:
        builder.overwrites(out, data)
        return builder.general(out)
    copied = builder.new_general(out)
    builder.copy(node, copied, builder.general(data))
    return copied


def _put(
    builder: Builder, node: Node, operands: Sequence[Operand], indexed: Operand, *, apart: int, shared: int
) -> None:
    """Emit the update; the indices of one place are ``apart``, and threads share the first ``shared`` axes."""
    lacking, sign = integers(node, "wrapping")
    outer, inner = (joined([_axes(one, *axes) for one in operands]) for axes in ((0, shared), (shared, None)))
    walked = [
        replace(one, sizes=(*first.sizes, *then.sizes), strides=(*first.strides, *then.strides))
        for one, first, then in zip(operands, outer, inner, strict=True)
    ]
    numbers = (apart, len(outer[0].sizes), lacking, sign + _HOW * int(number(node, "update")))
    builder.emit_general(f"put_{operands[0].element.suffix}", node, (*walked, indexed), numbers)
