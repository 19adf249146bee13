"""Resize and Upsample get their whole factors as one attribute."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.graph import Graph, Node
from powerlab.engine.operators.resizing import resize_factors
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _resize(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "factors" in node.attributes:
        return None
    return [Node("Resize", node.name, node.inputs[:1], node.outputs, {"factors": resize_factors(view)})]


def lower_resizes(graph: Graph) -> Graph:
    """Return the graph with Resize alone, and only its image as input."""
    return rewrite_nodes(graph, {"Resize": _resize, "Upsample": _resize})
