"""A Product reads a transposed side where it lies: the Transpose before becomes an order of axes of the Product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node

_SIDES = ("left", "right")


def fuse_transposes(graph: Graph) -> Graph:
    """Return the graph with no Product behind a Transpose; what nobody reads any more is dropped later."""
    made = graph.producers()
    return graph.rewritten(_fused(node, made) if node.op_type == "Product" else node for node in graph.nodes)


def _fused(node: Node, made: Mapping[str, Node]) -> Node:
    inputs, attributes = list(node.inputs), dict(node.attributes)
    for index, side in enumerate(_SIDES):
        before = made.get(inputs[index])
        if before is not None and before.op_type == "Transpose":
            order = cast("tuple[int, ...]", before.attributes["perm"])
            after = cast("tuple[int, ...]", attributes[side]) or range(len(order))
            inputs[index], attributes[side] = before.inputs[0], tuple(order[axis] for axis in after)
    return replace(node, inputs=tuple(inputs), attributes=attributes)
