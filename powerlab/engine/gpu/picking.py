"""Inputs of whole numbers that pick places along an axis, and views of them, which lie as integers."""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node

_VIEWS = ("Expand", "Reshape")
_PICKS = ("Gather", "GatherElements", "ScatterElements")


def place_views(graph: Graph) -> dict[str, str]:
    """Return the inputs of integers of a graph, and what repeats or reshapes them, each with the input."""
    found = {info.name: info.name for info in graph.inputs if info.dtype.kind in "iu"}
    for node in graph.nodes:
        if node.op_type in _VIEWS and node.inputs[0] in found:
            found[node.outputs[0]] = found[node.inputs[0]]
    return found


def reads_places(graph: Graph, views: dict[str, str], node: Node, name: str) -> bool:
    """Tell whether a node only looks at a tensor to know places, or makes a view of such."""
    if name not in views:
        return False
    if node.op_type in ("Gather", "GatherElements"):
        return name == node.inputs[1] and graph.tensors[name].elements == graph.tensors[views[name]].elements
    return node.op_type in _VIEWS or (node.op_type == "ScatterElements" and name == node.inputs[1])


def picking_inputs(graph: Graph, views: dict[str, str]) -> set[str]:
    """Return the inputs that pick places, some of them by a view."""
    picks = ((node, node.inputs[1]) for node in graph.nodes if node.op_type in _PICKS)
    return {views[name] for node, name in picks if reads_places(graph, views, node, name)}
