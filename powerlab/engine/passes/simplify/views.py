"""Views of views become one, and a view that changes nothing goes.

A view that gives a convolved row of pixels the shape of an image changes places with the convolution if that is of
1 x 1: it then writes the image as its reader wants it, with zeros around its rows.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, sole_among
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def simplify_views(graph: Graph) -> Graph:
    """Return the graph with the fewest Reshape nodes that keep the names of its outputs."""
    if "Reshape" not in graph.operators:
        return drop_dead(graph)
    simple = _named(drop_dead(_merged(graph)))
    lifted = _lifted(simple)
    return simple if lifted is simple else _named(drop_dead(_merged(lifted)))


def _merged(graph: Graph) -> Graph:
    """Read through views: of each, what it shows is read; where it has the same shape, the source itself."""
    renamed: dict[str, str] = {}
    made: dict[str, Node] = {}
    for old in graph.nodes:
        node = old
        if not renamed.keys().isdisjoint(old.inputs):
            node = replace(old, inputs=tuple([renamed.get(name, name) for name in old.inputs]))
        output = node.outputs[0]
        if node.op_type == "Reshape":
            source = node.inputs[0]
            if source in made and made[source].op_type == "Reshape":
                source = made[source].inputs[0]
            node = node if source == node.inputs[0] else view_node(node.name, source, output)
            if graph.shape(source) == graph.shape(output):
                renamed[output] = source
        made[output] = node
    return graph.rewritten(made.values())


def _lifted(graph: Graph) -> Graph:
    """Let convolutions of 1 x 1 make images of several rows themselves where views make them of one row."""
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        output = node.outputs[0]
        conv = sole(node.inputs[0]) if node.op_type == "Reshape" else None
        if conv is None or not _is_point_of_row(graph, conv) or not _gives_rows(graph, conv, node):
            made[output] = node
            continue
        source = conv.inputs[0]
        image = rewriter.tensor(f"{output}.image", (*graph.shape(source)[:2], *graph.shape(output)[2:]))
        made[image] = view_node(f"{node.name}.image", source, image)
        del made[conv.outputs[0]]
        made[output] = replace(conv, inputs=(image, *conv.inputs[1:]), outputs=(output,))
    return rewriter.finish(tuple(made.values())) if rewriter.tensors else graph


def _is_point_of_row(graph: Graph, node: Node) -> bool:
    return (
        node.op_type == "FusedConv"
        and graph.shape(node.inputs[1])[2:] == node.attributes["strides"] == (1, 1)
        and not any(cast("tuple[int, ...]", node.attributes["pads"]))
        and not node.input(3)
        and graph.shape(node.outputs[0])[2] == 1
    )


def _gives_rows(graph: Graph, conv: Node, view: Node) -> bool:
    before, after = (graph.shape(node.outputs[0]) for node in (conv, view))
    return len(after) == len(before) and after[:2] == before[:2] and after[2] > 1


def _renamed(node: Node, output: str) -> Node:
    return replace(node, outputs=(output, *node.outputs[1:]))


def _named(graph: Graph) -> Graph:
    """Let a node make the output itself that a view of the same shape only gives its name."""
    readings, outputs = graph.readings, graph.output_names()
    made: dict[str, Node] = {}
    for node in graph.nodes:
        source, output = node.inputs[0], node.outputs[0]
        sole = source in made and source not in outputs and readings[source] == 1
        names_only = node.op_type == "Reshape" and sole and graph.shape(source) == graph.shape(output)
        made[output] = _renamed(made.pop(source), output) if names_only else node
    return graph.rewritten(made.values())
