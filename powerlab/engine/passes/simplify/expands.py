"""Expansions that arithmetic makes anyway: an operator that repeats its smaller operands reads what an Expand read.

Exporters write an Expand where a tensor is divided by its norm (PyTorch's ``normalize``), or a mask has fewer heads;
and one of indices where whole rows are written.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.elementwise import ELEMENTWISE
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_BROADCASTING = {*ELEMENTWISE, "Mean", "Pow", "Where"}

_INDICES = 1
"""The input of a ScatterElements whose rows may all be the same."""


def drop_expands(graph: Graph) -> Graph:
    """Return the graph without the Expands that operators do by themselves; for other readers they stay."""
    expanded = {node.outputs[0]: node.inputs[0] for node in graph.nodes if node.op_type == "Expand"}
    if not expanded:
        return graph
    return drop_dead(graph.rewritten([_without_expands(graph, node, expanded) for node in graph.nodes]))


def _without_expands(graph: Graph, node: Node, expanded: dict[str, str]) -> Node:
    if node.op_type == "ScatterElements":
        return _without_repeated_indices(graph, node, expanded)
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


def _without_repeated_indices(graph: Graph, node: Node, expanded: dict[str, str]) -> Node:
    """Return a ScatterElements whose kernel repeats the indices; PyTorch writes ``x[i] = y`` with all of them."""
    indices = expanded.get(node.inputs[_INDICES])
    if indices is None or len(graph.shape(indices)) != len(graph.shape(node.inputs[_INDICES])):
        return node
    return replace(node, inputs=(node.inputs[0], indices, *node.inputs[_INDICES + 1 :]))
