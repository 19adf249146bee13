"""What all convolutions' steps have in common: fields of the native step, result and residual."""

from __future__ import annotations

from typing import Any

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.program import Tensor


def kernel_fields(shape: ConvShape) -> dict[str, int]:
    """Return kernel, strides, dilations and padding as fields of the native step."""
    return {
        "kernel_h": shape.kernel[0],
        "kernel_w": shape.kernel[1],
        "stride_h": shape.strides[0],
        "stride_w": shape.strides[1],
        "dilation_h": shape.dilations[0],
        "dilation_w": shape.dilations[1],
        "pad_top": shape.pads[0],
        "pad_left": shape.pads[1],
    }


def window_fields(shape: ConvShape, node: Node) -> dict[str, Any]:
    """Return the same with the activation."""
    return {**kernel_fields(shape), **clamp_fields(node)}


def result(builder: Builder, node: Node) -> tuple[Tensor, Tensor | None]:
    """Return where the result goes, and the residual, both in blocks."""
    residual = builder.blocked(node.input(3)) if node.input(3) else None
    return builder.new_blocked(node.outputs[0]), residual
