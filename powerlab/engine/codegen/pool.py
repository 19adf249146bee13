"""Pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.program import Floats

_LEAST_COLUMNS = 8
"""Of a row of the result: shorter ones are pooled faster in blocks, whatever it takes to bring them there."""

_MOST_COLUMNS = 1024
"""That a window has, or moves on by: the kernel has a line of twice as many."""


def window_fields(node: Node) -> dict[str, Any]:
    """Return window, strides and padding as fields of the native step."""
    kernel_h, kernel_w = integers(node, "kernel")
    stride_h, stride_w = integers(node, "strides")
    top, left = integers(node, "pads")[:2]
    return {
        "kernel_h": kernel_h,
        "kernel_w": kernel_w,
        "stride_h": stride_h,
        "stride_w": stride_w,
        "pad_top": top,
        "pad_left": left,
    }


def _lies_in_rows(builder: Builder, node: Node) -> bool:
    """Tell whether an image lies in rows long enough to be pooled there, and in no blocks."""
    name = node.inputs[0]
    if builder.is_blocked(name) or not builder.has_strides(name):
        return False
    (_, kernel_w), (_, stride_w) = integers(node, "kernel"), integers(node, "strides")
    columns = builder.graph.shape(node.outputs[0])[3]
    return (
        columns >= _LEAST_COLUMNS and max(kernel_w, stride_w) <= _MOST_COLUMNS and builder.general(name).strides[3] == 1
    )


def lower_max_pool(builder: Builder, node: Node) -> None:
    """Lower a MaxPool: of 16-bit floats where these are there and all that reads the result takes them."""
    name, made = node.inputs[0], node.outputs[0]
    if builder.lies_in_pairs(name) and builder.is_read_in_pairs(made):
        kernel = f"pool_max_{builder.tier.precision}"
        builder.emit(kernel, node, builder.new_pairs(made), builder.pairs(name), **window_fields(node))
        return
    if _lies_in_rows(builder, node):
        operands = [builder.new_general(made), builder.general(name)]
        builder.emit_general("pool_rows_max_f32", node, operands, **window_fields(node))
        return
    x = builder.blocked(name)
    builder.emit("pool_max", node, builder.new_blocked(node.outputs[0]), x, **window_fields(node))


def lower_average_pool(builder: Builder, node: Node) -> None:
    """Lower an AveragePool."""
    count_padding = int(bool(node.attributes["count_include_pad"]))
    if _lies_in_rows(builder, node):
        operands = [builder.new_general(node.outputs[0]), builder.general(node.inputs[0])]
        fields = {"count_padding": count_padding, **window_fields(node)}
        builder.emit_general("pool_rows_average_f32", node, operands, **fields)
        return
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    builder.emit("pool_average", node, out, x, count_padding=count_padding, **window_fields(node))


def lower_global_average_pool(builder: Builder, node: Node) -> None:
    """Lower a GlobalAveragePool."""
    x = builder.blocked(node.inputs[0])
    builder.emit("pool_global_average", node, builder.new_blocked(node.outputs[0]), x)


def lower_pool(builder: Builder, node: Node) -> None:
    """Lower a Pool: maxima, averages or norms over windows of any kind."""
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    dilation_h, dilation_w = integers(node, "dilations")
    kind = str(node.attributes["kind"])
    builder.emit(
        f"pool_any_{kind}",
        node,
        out,
        x,
        weights=_shares(builder, node) if kind == "average" else None,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        alpha=number(node, "p") if kind == "lp" else 0.0,
        **window_fields(node),
    )


def _shares(builder: Builder, node: Node) -> Floats:
    """Return one over the pixels that a window counts: down for every row of the result, then across."""
    image, size = builder.graph.shape(node.inputs[0])[2:], builder.graph.shape(node.outputs[0])[2:]
    shares = []
    for axis in range(2):
        kernel, stride, dilation = (integers(node, name)[axis] for name in ("kernel", "strides", "dilations"))
        counted = integers(node, "counted_pads")
        first = np.arange(size[axis]) * stride - integers(node, "pads")[axis]
        taps = first[:, None] + np.arange(kernel) * dilation
        inside = (taps >= -counted[axis]) & (taps < image[axis] + counted[axis + 2])
        shares.append(1 / inside.sum(axis=1))
    return np.concatenate(shares).astype(np.float32)
