"""Dead-node elimination: what no output needs goes, weights included."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

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
    changed = False
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            changed = True
            continue
        needed.update(node.inputs)
        needed.discard("")  # an input left out is no output left out
        outputs = node.outputs if len(node.outputs) == 1 else _needed_outputs(node, needed)
        nodes.append(node if outputs == node.outputs else replace(node, outputs=outputs))
        changed |= outputs != node.outputs
    nodes.reverse()
    kept = needed.union([info.name for info in graph.inputs], *[node.outputs for node in nodes])
    if "Chain" in graph.operators:
        kept.update([part.outputs[0] for node in nodes for part in convolutions_of(node)])
    if not changed and graph.kept_constants.keys() <= needed and graph.tensors.keys() <= kept:
        return graph
    constants = {name: value for name, value in graph.kept_constants.items() if name in needed}
    tensors = {name: info for name, info in graph.tensors.items() if name in kept}
    return replace(graph, nodes=tuple(nodes), constants=Constants(constants), tensors=tensors)
