"""Functions of one number, element by element."""

from __future__ import annotations

from typing import Any

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.elementwise import emit_alike
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.functions import KERNELS


def lower_function(builder: Builder, node: Node) -> None:
    """Lower a function of one number."""
    numbers: dict[str, Any] = {name: number(node, name) for name in node.attributes}
    emit_alike(builder, node, KERNELS[node.op_type], **numbers)
