"""Images padded with their own pixels, as floats in planes or blocks, or as bytes: a kernel moves words."""

from __future__ import annotations

from typing import Any

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.quantized.layouts import byte_fields
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.program import Tensor


def lower_image_pad(builder: Builder, node: Node) -> None:
    """Lower an ImagePad, in the layout in which the image lies."""
    name, output = node.inputs[0], node.outputs[0]
    if builder.is_blocked(name):
        _emit(builder, node, builder.new_blocked(output), builder.blocked(name))
    else:
        _emit(builder, node, builder.new_planar(output), builder.planes(name))


def lower_quantized_pad(builder: Builder, node: Node) -> None:
    """Lower a QuantPad."""
    x, out = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0])
    _emit(builder, node, out, x, **byte_fields(node, out, builder.tier.byte_form))


def _emit(builder: Builder, node: Node, out: Tensor, x: Tensor, **fields: Any) -> None:
    top, left = integers(node, "pads")[:2]
    builder.emit(f"pad_{node.attributes['mode']}", node, out, x, pad_top=top, pad_left=left, **fields)
