"""What all convolutions' steps have in common: fields of the native step, result and residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats, Tensor

Tensors = tuple[Tensor, Tensor, Tensor | None]
"""What a step writes, what it reads, and what it adds: None where that is nothing."""


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


def in_blocks(builder: Builder, node: Node) -> Tensors:
    """Return what a convolution writes, reads and adds, all in blocks of floats."""
    x = builder.blocked(node.inputs[0])
    out, residual = result(builder, node)
    return out, x, residual


def emit_in_blocks(
    builder: Builder,
    node: Node,
    shape: ConvShape,
    choice: Choice,
    tensors: Tensors,
    *,
    family: str,
    pack: Callable[[Floats, int], Floats],
    **settings: int,
) -> None:
    """Append the step of a kernel that reads blocks of channels and writes as many.

    Args:
        builder: of the program.
        node: the FusedConv.
        shape: what it is asked to do.
        choice: what was chosen for it.
        tensors: what it writes, reads and adds.
        family: the kernel.
        pack: weights and a vector's width -> weights as the kernel reads them.
        settings: further fields of the native step.
    """
    width = builder.tier.vector_width
    weights, bias = builder.constant(node.inputs[1]), builder.optional_constant(node.input(2))
    out, x, residual = tensors
    builder.emit(
        family,
        node,
        out,
        x,
        residual,
        choice=choice,
        weights=pack(weights, width),
        bias=fill_channels(bias, shape.outputs, divide_up(shape.outputs, width), width),
        **settings,
        **window_fields(shape, node),
    )


def result(builder: Builder, node: Node) -> tuple[Tensor, Tensor | None]:
    """Return where the result goes, and the residual, both in blocks."""
    residual = builder.blocked(node.input(3)) if node.input(3) else None
    return builder.new_blocked(node.outputs[0]), residual
