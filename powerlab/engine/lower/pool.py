"""Pooling."""

from __future__ import annotations

from typing import Any

from powerlab.engine.graph import Node
from powerlab.engine.lower.attributes import integers
from powerlab.engine.lower.builder import Builder


def _window(node: Node) -> dict[str, Any]:
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


def lower_max_pool(builder: Builder, node: Node) -> None:
    """Lower a MaxPool."""
    x = builder.blocked(node.inputs[0])
    builder.emit("pool_max", node, builder.new_blocked(node.outputs[0]), x, **_window(node))


def lower_average_pool(builder: Builder, node: Node) -> None:
    """Lower an AveragePool."""
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    count_padding = int(bool(node.attributes["count_include_pad"]))
    builder.emit("pool_average", node, out, x, count_padding=count_padding, **_window(node))


def lower_global_average_pool(builder: Builder, node: Node) -> None:
    """Lower a GlobalAveragePool."""
    x = builder.blocked(node.inputs[0])
    builder.emit("pool_global_average", node, builder.new_blocked(node.outputs[0]), x)
