"""Resizing."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_resize(builder: Builder, node: Node) -> None:
    """Lower a Resize: its factors stand in the step's strides."""
    x = builder.blocked(node.inputs[0])
    stride_h, stride_w = integers(node, "factors")
    out = builder.new_blocked(node.outputs[0])
    builder.emit("resize_nearest", node, out, x, stride_h=stride_h, stride_w=stride_w)


def lower_interpolate(builder: Builder, node: Node) -> None:
    """Lower an Interpolate: the taps of its rows are the step's weights, those of its columns the bias."""
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    rows, columns = (builder.constant(name) for name in node.inputs[1:])
    builder.emit(
        "interpolate",
        node,
        out,
        x,
        weights=rows.reshape(-1),
        bias=columns.reshape(-1),
        kernel_h=rows.shape[1],
        kernel_w=columns.shape[1],
        offset=number(node, "extrapolation"),
    )
