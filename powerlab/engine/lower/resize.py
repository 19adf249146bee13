"""Resizing."""

from __future__ import annotations

from powerlab.engine.graph import Node
from powerlab.engine.lower.attributes import integers
from powerlab.engine.lower.builder import Builder


def lower_resize(builder: Builder, node: Node) -> None:
    """Lower a Resize: its factors stand in the step's strides."""
    x = builder.blocked(node.inputs[0])
    stride_h, stride_w = integers(node, "factors")
    out = builder.new_blocked(node.outputs[0])
    builder.emit("resize_nearest", node, out, x, stride_h=stride_h, stride_w=stride_w)
