"""Nodes of general kernels: tensors of any shape, of floats or whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from powerlab.engine.graph import Node
from powerlab.engine.lower.builder import Builder


def lower_elementwise(builder: Builder, node: Node) -> None:
    """Lower an Elementwise node."""
    operands = [builder.general(name) for name in node.inputs]
    out = builder.new_general(node.outputs[0])
    numbers = tuple(cast("Iterable[int]", node.attributes["numbers"]))
    builder.emit_each(str(node.attributes["kernel"]), node, out, *operands, numbers=numbers)
