"""Dead-node elimination: what no output needs goes, weights included."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from powerlab.engine.ir.constants import Constants
from powerlab.engine.ir.graph import Graph, Node, convolutions_of


def _needed_outputs(node: Node, needed: AbstractSet[str]) -> tuple[str, ...]:
    """Return a node's outputs; the first stays, others that nobody needs lose their names."""
    first, *more = node.outputs
    return (first, *(name if name in needed else "" for name in more))


def drop_dead(graph: Graph) -> Graph:
    """Return the graph with only the nodes, constants and tensors its outputs need; inputs stay."""
    needed = set(graph.output_names())
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(filter(None, node.inputs))
            outputs = _needed_outputs(node, needed)
            nodes.append(node if outputs == node.outputs else replace(node, outputs=outputs))
    nodes.reverse()
    made = {name for node in nodes for part in (node, *convolutions_of(node)) for name in part.outputs if name}
    kept = needed | {info.name for info in graph.inputs} | made
    return replace(
        graph,
        nodes=tuple(nodes),
        constants=Constants({name: value for name, value in graph.kept_constants.items() if name in needed}),
        tensors={name: info for name, info in graph.tensors.items() if name in kept},
    )
