"""Nodes of general kernels: tensors of any shape, of floats or integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_elementwise(builder: Builder, node: Node) -> None:
    """Lower an Elementwise node."""
    operands = [builder.general(name) for name in node.inputs]
    out = builder.new_general(node.outputs[0])
    numbers = tuple(cast("Iterable[int]", node.attributes["numbers"]))
    builder.emit_each(str(node.attributes["kernel"]), node, out, *operands, numbers=numbers)


def lower_general(builder: Builder, node: Node) -> None:
    """Lower a General node: its kernel writes its outputs and reads its inputs, those that have names."""
    outputs = [builder.new_general(name) for name in node.outputs if name]
    inputs = [builder.general(name) for name in node.inputs if name]
    fields = cast("Mapping[str, Any]", node.attributes["fields"])
    builder.emit_general(str(node.attributes["kernel"]), node, [*outputs, *inputs], **fields)
