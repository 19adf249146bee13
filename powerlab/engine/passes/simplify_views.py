"""Views of views become one, and a view that changes nothing goes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from powerlab.engine.graph import Graph, Node
from powerlab.engine.passes.lower_views import view_node


def simplify_views(graph: Graph) -> Graph:
    """Return the graph with the fewest Reshape nodes that keep the names of its outputs."""
    outputs = graph.output_names()
    readings = Counter(name for node in graph.nodes for name in node.inputs)
    renamed: dict[str, str] = {}
    made: dict[str, Node] = {}
    for old in graph.nodes:
        node = replace(old, inputs=tuple(renamed.get(name, name) for name in old.inputs))
        output = node.outputs[0]
        if node.op_type != "Reshape":
            made[output] = node
            continue
        source = node.inputs[0]
        if source in made and made[source].op_type == "Reshape":
            source = made[source].inputs[0]
        if graph.shape(source) != graph.shape(output):
            made[output] = view_node(node.name, source, output)
        elif output not in outputs:
            renamed[output] = source
        elif source in made and source not in outputs and readings[old.inputs[0]] == 1 and source == old.inputs[0]:
            made[output] = replace(made.pop(source), outputs=(output,))
        else:
            made[output] = view_node(node.name, source, output)
    return graph.rewritten(made.values())
