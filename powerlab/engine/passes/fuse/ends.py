"""What ends a node, such as an activation, may stand behind views and transposes of its result; these go behind it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.rewriting import sole_among

Ended = Callable[[Node, Node], Mapping[str, object] | None]
"""Gives the attributes of a node that ends as the other one says; None where it cannot."""

_MOVES = ("Reshape", "Transpose")


def fuse_ends(graph: Graph, ending: Collection[str], ended: Ended) -> Graph:
    """Return the graph with each node of the operators ``ending`` that can be fused in what is made for it alone."""
    if graph.operators.isdisjoint(ending):
        return graph
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        before, move = sole(node.inputs[0]) if node.op_type in ending else None, None
        while before is not None and before.op_type in _MOVES:
            before, move = sole(before.inputs[0]), move or before
        attributes = None if before is None else ended(before, node)
        if before is None or attributes is None:
            made[node.outputs[0]] = node
        elif move is None:
            del made[before.outputs[0]]
            made[node.outputs[0]] = replace(before, outputs=node.outputs, attributes=attributes)
        else:
            made[before.outputs[0]] = replace(before, attributes=attributes)
            del made[move.outputs[0]]
            made[node.outputs[0]] = replace(move, outputs=node.outputs)
    return graph.rewritten(made.values())
