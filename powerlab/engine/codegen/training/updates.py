"""Optimizers: one step a weight, which reads and writes everything once."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import joined


def lower_sgd_update(builder: Builder, node: Node) -> None:
    """Lower an SgdUpdate."""
    family = "momentum_update_f32" if number(node, "kept") else "sgd_update_f32"
    _emit(builder, node, family, int(number(node, "nesterov")))


def lower_adam_update(builder: Builder, node: Node) -> None:
    """Lower an AdamUpdate."""
    _emit(builder, node, "adam_update_f32", int(number(node, "decoupled")))


def _emit(builder: Builder, node: Node, family: str, way: int) -> None:
    tensors = 2 + int(number(node, "kept"))
    read = [builder.general(name) for name in node.inputs]
    made = [builder.new_general(name) for name in node.outputs]
    same = joined((*made, *read[:tensors]))
    if any(one.strides[-1] != 1 for one in same):  # images of one element, which have room between them
        same = tuple(replace(one, sizes=(*one.sizes, 1), strides=(*one.strides, 1)) for one in same)
    numbers = (one.broadcast((1,)) for one in read[tensors:])
    builder.emit_general(family, node, (*same, *numbers), (way,), alpha=number(node, "share"))
