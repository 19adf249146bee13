"""Operators that treat each number by itself."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.activations import Finish, finish_by, finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.packing import per_output
from powerlab.engine.gpu.lowering.strided import OPERATIONS, emit_strided
from powerlab.engine.gpu.whole_numbers import kernel_of
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_TAKE, _ADD, _MULTIPLY, _BY_CHANNEL, SCALE_SHIFT = range(5)
"""OPERATION of ``shaders/pointwise.comp``."""

_WHOLE = {
    **{name: name for name in ("add", "equal", "is_not_zero", "is_zero", "less", "less_or_equal", "max", "min", "mul")},
    "bit_and": "mul",
    "bit_or": "max",
    "bit_xor": "not_equal",
    "cast": "copy",
    "sub": "sub",
    "where": "where",
}
"""Kernels over truth and over small integers, which are floats on a GPU → the same over floats."""


def lower_add(builder: Builder, node: Node) -> None:
    """Lower an Add of two tensors of one shape."""
    _emit(builder, node, _ADD, finish_of(node))


def lower_clamp(builder: Builder, node: Node) -> None:
    """Lower a Clamp."""
    _emit(builder, node, _TAKE, finish_of(node))


def lower_function(builder: Builder, node: Node) -> None:
    """Lower a function of one number."""
    _emit(builder, node, _TAKE, finish_by(node))


def lower_multiply(builder: Builder, node: Node) -> None:
    """Lower a Multiply: of two tensors of one shape, or of an image with one number a channel."""
    shapes = {builder.graph.shape(name) for name in node.inputs}
    _emit(builder, node, _MULTIPLY if len(shapes) == 1 else _BY_CHANNEL, finish_of(node))


def lower_scale_shift(builder: Builder, node: Node) -> None:
    """Lower a ScaleShift: one factor and one summand a channel."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    both = [
        builder.constant(per_output(builder.graph.constants[name], 1, x.blocks), floats=True)
        for name in node.inputs[1:]
    ]
    function, numbers = finish_of(node)
    builder.emit_flat(
        "pointwise",
        node,
        (builder.new_blocks(node.outputs[0]), source, source, *both),
        x.vectors,
        constants=(function, SCALE_SHIFT),
        push=(*numbers, x.vectors, x.pixels, x.blocks),
    )


def lower_elementwise(builder: Builder, node: Node) -> None:
    """Lower an Elementwise node: numbers of tensors that broadcast.

    Raises:
        PowerlabError: there is no such function on a GPU.
    """
    stem, kinds = kernel_of(node)
    operation = stem if kinds == "f32" else _WHOLE.get(stem) if kinds.startswith("i64") else None
    if operation not in OPERATIONS:
        raise PowerlabError(
            f"{node} computes {stem!r} of {kinds}, which the engine does not on a GPU yet; use the device cpu."
        )
    operands = tuple(builder.operand(name) for name in node.inputs)
    emit_strided(builder, node, operation, builder.new_operand(node.outputs[0]), operands)


def emit_finish(builder: Builder, node: Node, storage: Storage, finish: Finish) -> None:
    """Append the end of a node whose kernel ends otherwise: blocks become a function of themselves."""
    image, (function, numbers) = builder.image(node.outputs[0]), finish
    builder.emit_flat(
        "pointwise",
        node,
        (storage,) * 5,
        image.vectors,
        constants=(function, _TAKE),
        push=(*numbers, image.vectors, image.pixels, image.blocks),
    )


def _emit(builder: Builder, node: Node, operation: int, finish: Finish) -> None:
    """Append a dispatch over operands that lie alike: in blocks where one does already, or channels are told apart."""
    image, (function, numbers) = builder.image(node.outputs[0]), finish
    if operation == _BY_CHANNEL or any(builder.in_blocks(name) for name in node.inputs):
        first, *more = sorted(node.inputs, key=lambda name: -builder.image(name).pixels)
        operands = [builder.blocks(name) for name in (first, *more)]
        out, count = builder.new_blocks(node.outputs[0]), image.vectors
    else:
        operands = [builder.rows(name) for name in node.inputs]
        out, count = builder.new_rows(node.outputs[0]), -(-builder.graph.tensors[node.outputs[0]].elements // 4)
    unused = operands[0]
    builder.emit_flat(
        "pointwise",
        node,
        (out, *operands, *(unused for _ in range(4 - len(operands)))),
        count,
        constants=(function, operation),
        push=(*numbers, count, image.pixels, image.blocks),
    )
