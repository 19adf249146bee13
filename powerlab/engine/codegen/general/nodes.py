"""Nodes of general kernels: tensors of any shape, of floats or integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.general.plane_room import plane_room
from powerlab.engine.ir.graph import IMAGE_AXES, Node
from powerlab.engine.program.operand import Element, Operand
from powerlab.engine.program.program import Tensor

_IN_BLOCKS = ("sub_strided_f32", "max_strided_f32", "min_strided_f32")
"""Kernels that make zeros of zeros, so that what fills up the last block of channels stays a number."""


def lower_elementwise(builder: Builder, node: Node) -> None:
    """Lower an Elementwise node; what lies in blocks stays there."""
    kernel = str(node.attributes["kernel"])
    if kernel in _IN_BLOCKS and _lie_in_blocks(builder, node):
        operands = [_as_lies(builder.blocked(name)) for name in node.inputs]
        out = _as_lies(builder.new_blocked(node.outputs[0]))
    else:
        operands = [builder.general(name) for name in node.inputs]
        out = builder.new_general(node.outputs[0])
    numbers = tuple(cast("Iterable[int]", node.attributes["numbers"]))
    builder.emit_each(kernel, node, out, *operands, numbers=numbers)


def _lie_in_blocks(builder: Builder, node: Node) -> bool:
    """Tell whether all operands are images of one shape in blocks."""
    shape = builder.graph.shape(node.outputs[0])
    return len(shape) == IMAGE_AXES and all(
        builder.is_blocked(name) and builder.graph.shape(name) == shape for name in node.inputs
    )


def _as_lies(tensor: Tensor) -> Operand:
    """Return a tensor in blocks as a general one: images, blocks, rows, and columns of whole vectors."""
    layout = tensor.layout
    sizes = (layout.n, layout.blocks, layout.h, layout.w * layout.pixel)
    strides = (layout.image, layout.plane, layout.row, 1)
    return Operand(tensor.storage, Element.FLOAT, sizes, strides, tensor.offset + layout.start)


def lower_general(builder: Builder, node: Node) -> None:
    """Lower a General node: its kernel writes its outputs and reads its inputs, those that have names."""
    outputs = [builder.new_general(name) for name in node.outputs if name]
    inputs = [builder.general(name) for name in node.inputs if name]
    fields, kernel = cast("Mapping[str, Any]", node.attributes["fields"]), str(node.attributes["kernel"])
    if kernel == "conv_planes_f32":
        inputs.append(plane_room(builder, node))
    builder.emit_general(kernel, node, [*outputs, *inputs], **fields)
