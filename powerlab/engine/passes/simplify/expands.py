"""Expansions that arithmetic makes anyway: an operator that repeats its smaller operands reads what an Expand read.

Exporters write an Expand where a tensor is divided by its norm (PyTorch's ``normalize``), or a mask has fewer heads.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.elementwise import ELEMENTWISE
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_BROADCASTING = {*ELEMENTWISE, "Mean", "Pow", "Where"}


def drop_expands(graph: Graph) -> Graph:
    """Return the graph without the Expands that operators do by themselves; for other readers they stay."""
    expanded = {node.outputs[0]: node.inputs[0] for node in graph.nodes if node.op_type == "Expand"}
    if not expanded:
        return graph
    return drop_dead(graph.rewritten([_without_expands(graph, node, expanded) for node in graph.nodes]))


def _without_expands(graph: Graph, node: Node, expanded: dict[str, str]) -> Node:
    if node.op_type not in _BROADCASTING or expanded.keys().isdisjoint(node.inputs):
        return node
    inputs = list(node.inputs)
    for index, name in enumerate(node.inputs):
        if name not in expanded:
            continue
        kept, inputs[index] = inputs[index], expanded[name]
        if np.broadcast_shapes(*map(graph.shape, inputs)) != graph.shape(node.outputs[0]):
            inputs[index] = kept
    return replace(node, inputs=tuple(inputs))
