"""Functions of one number, element by element."""

from __future__ import annotations

from typing import Any

from powerlab.engine.graph import Node
from powerlab.engine.lower.attributes import number
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.elementwise import emit_alike
from powerlab.engine.operators.functions import KERNELS


def lower_function(builder: Builder, node: Node) -> None:
    """Lower a function of one number."""
    numbers: dict[str, Any] = {name: number(node, name) for name in node.attributes}
    emit_alike(builder, node, KERNELS[node.op_type], **numbers)
