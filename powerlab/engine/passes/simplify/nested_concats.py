"""Nested concatenation: a Concat that begins with all operands of an earlier one reads that one instead.

Exported dense networks join all earlier layers anew in each layer; nested, each of these joins only adds to the last.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node


def nest_concats(graph: Graph) -> Graph:
    """Return the graph with every Concat reading the longest earlier one that it begins with."""
    known: dict[tuple[int, tuple[str, ...]], str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type in ("Concat", "QuantConcat"):
            axis = cast("int", node.attributes["axis"]) % len(graph.shape(node.outputs[0]))
            beginnings = (node.inputs[:count] for count in range(len(node.inputs) - 1, 1, -1))
            begun = next((first for first in beginnings if (axis, first) in known), None)
            known.setdefault((axis, node.inputs), node.outputs[0])
            nodes.append(
                node if begun is None else replace(node, inputs=(known[axis, begun], *node.inputs[len(begun) :]))
            )
        else:
            nodes.append(node)
    return graph.rewritten(nodes)
