"""Dead-node elimination: what no output needs goes, weights included."""

from __future__ import annotations

from dataclasses import replace

from powerlab.engine.graph import Graph, Node


def drop_dead(graph: Graph) -> Graph:
    """Return the graph with only the nodes, constants and tensors its outputs need; inputs stay."""
    needed = set(graph.output_names())
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(filter(None, node.inputs))
            nodes.append(node)
    nodes.reverse()
    kept = needed | {info.name for info in graph.inputs} | {name for node in nodes for name in node.outputs}
    return replace(
        graph,
        nodes=tuple(nodes),
        constants={name: value for name, value in graph.constants.items() if name in needed},
        tensors={name: info for name, info in graph.tensors.items() if name in kept},
    )
