"""Sums behind linear layers of sequences: the layer adds what a Transformer's block adds to its result.

Convolutions take their sums in a pass (``fuse_residuals``). Here a view stands between, and rows decide: where their
elements do not follow on each other without filling, the sum stays a step of its own.
"""

from __future__ import annotations

import math

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.program.layout import PLANAR_ALIGNMENT, planar, shape4


class RowSum(Struct, frozen=True):
    """An Add that a linear layer does itself, and the tensor that it adds."""

    node: Node
    summand: str


def take_sum(builder: Builder, node: Node) -> RowSum | None:
    """Return the Add that alone reads a FusedGemm, maybe through views, and let it be written with the layer.

    None: there is none, or what it adds is not there yet, or not in rows like the layer's.
    """
    name, passed = node.outputs[0], []
    while (reader := builder.sole_reader(name)) is not None and reader.op_type == "Reshape":
        name = reader.outputs[0]
        passed.append(name)
    if reader is None or reader.op_type != "Add" or not is_linear(node):
        return None
    (summand,) = set(reader.inputs) - {name}
    outputs, made = builder.graph.shape(node.outputs[0])[1], reader.outputs[0]
    if outputs % PLANAR_ALIGNMENT or not builder.is_planar(summand) or builder.is_blocked(summand):
        return None
    if not (_lies_compact(builder, summand) and _lies_compact(builder, made)):
        return None
    builder.written.update((*passed, made))
    return RowSum(reader, summand)


def _lies_compact(builder: Builder, name: str) -> bool:
    """Tell whether nothing lies between the images of a planar tensor."""
    shape = shape4(builder.graph.shape(name))
    layout = builder.planar(name).layout if builder.is_planar(name) else planar(shape)
    return shape[0] == 1 or layout.image == math.prod(shape[1:])
