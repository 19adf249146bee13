"""Reductions of general tensors, and what goes along one axis of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, joined


def lower_reduce(builder: Builder, node: Node) -> None:
    """Lower a Reduce; an image in blocks whose pixels are averaged, or searched for the largest, is one window."""
    if _is_one_window(builder, node):
        _emit_one_window(builder, node)
        return
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    axes = integers(node, "axes")
    x, out = _reduced_last(x, out, axes)
    x, out = _with_reduced_axis(*joined((x, out)))
    reduced = sum(stride == 0 for stride in out.strides)
    kept = len(x.sizes) - reduced
    along_kept = kept > 0 and x.strides[kept - 1] == 1 and x.strides[-1] != 1
    function = f"reduce_{node.attributes['function']}_{x.element.suffix}"
    builder.emit_general(function, node, (out, x), (reduced, int(along_kept), *integers(node, "wrapping")))


def _is_one_window(builder: Builder, node: Node) -> bool:
    name, axes = node.inputs[0], tuple(integers(node, "axes"))
    pixels = axes == tuple(range(2, len(builder.graph.shape(name)))) and len(axes) > 0
    return pixels and node.attributes["function"] in ("max", "mean") and builder.lies_in_blocks(name)


def _emit_one_window(builder: Builder, node: Node) -> None:
    x, out = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0])
    if node.attributes["function"] == "mean":
        builder.emit("pool_global_average", node, out, x)
    else:
        size = x.layout
        builder.emit("pool_max", node, out, x, kernel_h=size.h, kernel_w=size.w, stride_h=1, stride_w=1)


def _reduced_last(x: Operand, out: Operand, axes: Sequence[int]) -> tuple[Operand, Operand]:
    """Return both with the axes that are reduced behind the others; the result has strides of 0 for them."""
    kept = [axis for axis in range(len(x.sizes)) if axis not in axes]
    if len(out.sizes) == len(x.sizes):
        out = out.permuted((*kept, *axes))
        strides = out.strides[: len(kept)]
    else:
        strides = out.strides
    x = x.permuted((*kept, *axes))
    return x, replace(out, sizes=x.sizes, strides=(*strides, *(0,) * len(axes)))


def _with_reduced_axis(x: Operand, out: Operand) -> tuple[Operand, Operand]:
    """Return both with an axis of 1 to reduce where all that are longer are kept."""
    if 0 in out.strides:
        return x, out
    return x.split(len(x.sizes) - 1, (x.sizes[-1], 1)), replace(out, sizes=(*out.sizes, 1), strides=(*out.strides, 0))


def lower_arg_most(builder: Builder, node: Node) -> None:
    """Lower an ArgMost, ArgMax or ArgMin of ONNX."""
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    x, out = _reduced_last(x, out, (int(number(node, "axis")),))
    numbers = (1, int(number(node, "last")), int(number(node, "largest")))
    builder.emit_general(f"arg_most_{x.element.suffix}", node, (out, x), numbers)


def lower_running_sum(builder: Builder, node: Node) -> None:
    """Lower a CumSum; a reversed one is a sum over views that go backwards."""
    x, out = builder.general(node.inputs[0]), builder.new_general(node.outputs[0])
    axis = int(number(node, "axis"))
    if number(node, "reverse"):
        x, out = (one.sliced(axis, one.sizes[axis] - 1, one.sizes[axis], -1) for one in (x, out))
    numbers = (1, int(number(node, "exclusive")), *integers(node, "wrapping"))
    builder.emit_general(f"running_sum_{x.element.suffix}", node, (_last(out, axis), _last(x, axis)), numbers)


def lower_top(builder: Builder, node: Node) -> None:
    """Lower a TopK."""
    x, axis = builder.general(node.inputs[0]), int(number(node, "axis"))
    values = builder.new_general(node.outputs[0])
    places = node.outputs[1] if len(node.outputs) > 1 else ""
    at = builder.new_general(places) if places else builder.whole_room(values.sizes)
    operands = tuple(_last(one, axis) for one in (values, at, x))
    builder.emit_general(f"top_{x.element.suffix}", node, operands, (1, int(number(node, "largest"))))


def _last(operand: Operand, axis: int) -> Operand:
    """Return the operand with one axis behind the others."""
    return operand.permuted((*(at for at in range(len(operand.sizes)) if at != axis), axis))
