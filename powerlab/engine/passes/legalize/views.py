"""Operators that keep all elements in their order become Reshape, a view."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.moving import concat_axis
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.views import permutation
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def view_node(name: str, source: str, output: str) -> Node:
    """Return a node that shows ``source`` in the shape of ``output``."""
    return Node("Reshape", name, (source,), (output,))


def _as_view(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [view_node(node.name, node.inputs[0], node.outputs[0])]


def _transpose(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Leave a Transpose that changes the order of elements."""
    shape = view.shape(0)
    moved = [axis for axis in permutation(view) if shape[axis] != 1]
    if moved == sorted(moved):
        return _as_view(view, rewriter)
    node = view.node
    return [Node("Transpose", node.name, node.inputs, node.outputs, {"perm": permutation(view)})]


def _concat(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    filled = tuple(name for name, info in zip(node.inputs, view.infos, strict=True) if info is None or info.elements)
    if len(filled) == 1:
        return [view_node(node.name, filled[0], node.outputs[0])]
    return [Node("Concat", node.name, filled, node.outputs, {"axis": concat_axis(view)})]


_RULES = {
    "Concat": _concat,
    "Dropout": _as_view,
    "Flatten": _as_view,
    "Identity": _as_view,
    "Reshape": _as_view,
    "Squeeze": _as_view,
    "Transpose": _transpose,
    "Unsqueeze": _as_view,
}


def lower_views(graph: Graph) -> Graph:
    """Return the graph with Reshape as its only view."""
    return rewrite_nodes(graph, _RULES)
