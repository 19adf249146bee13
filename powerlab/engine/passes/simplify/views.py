"""Views of views become one, and a view that changes nothing goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def simplify_views(graph: Graph) -> Graph:
    """Return the graph with the fewest Reshape nodes that keep the names of its outputs."""
    return _named(drop_dead(_merged(graph)))


def _merged(graph: Graph) -> Graph:
    """Read through views: of each, what it shows is read; where it has the same shape, the source itself."""
    renamed: dict[str, str] = {}
    made: dict[str, Node] = {}
    for old in graph.nodes:
        inputs = tuple(renamed.get(name, name) for name in old.inputs)
        node = old if inputs == old.inputs else replace(old, inputs=inputs)
        output = node.outputs[0]
        if node.op_type == "Reshape":
            source = node.inputs[0]
            if source in made and made[source].op_type == "Reshape":
                source = made[source].inputs[0]
            node = view_node(node.name, source, output)
            if graph.shape(source) == graph.shape(output):
                renamed[output] = source
        made[output] = node
    return graph.rewritten(made.values())


def _renamed(node: Node, output: str) -> Node:
    return replace(node, outputs=(output, *node.outputs[1:]))


def _named(graph: Graph) -> Graph:
    """Let a node make the output itself that a view of the same shape only gives its name."""
    outputs = graph.output_names()
    readings = Counter(name for node in graph.nodes for name in node.inputs)
    made: dict[str, Node] = {}
    for node in graph.nodes:
        source, output = node.inputs[0], node.outputs[0]
        sole = source in made and source not in outputs and readings[source] == 1
        names_only = node.op_type == "Reshape" and sole and graph.shape(source) == graph.shape(output)
        made[output] = _renamed(made.pop(source), output) if names_only else node
    return graph.rewritten(made.values())
