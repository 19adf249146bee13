"""Reductions get their axes as numbers: Reduce, ArgMost, CumSum and TopK are left."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.reducing import REDUCTIONS, only_axis, reduced_axes, running_axis, top_count
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import cast, wrapping
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_FLOATS_ONLY = ("l2", "log_sum", "log_sum_exp")
"""Of integers these are made by way of floats."""


def _reduce(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, dtype, output = view.node, view.dtype(0), view.node.outputs[0]
    function, axes = REDUCTIONS[node.op_type][0], reduced_axes(view)
    if not axes:
        return [view_node(node.name, node.inputs[0], output)]
    attributes = {"function": function, "axes": axes, "wrapping": wrapping(dtype)}
    if dtype == FLOAT32 or function not in _FLOATS_ONLY:
        return [Node("Reduce", node.name, node.inputs[:1], (output,), attributes)]
    floats = rewriter.tensor(f"{output}.floats", view.shape(0))
    result = rewriter.tensor(f"{output}.result", rewriter.graph.shape(output))
    return [
        cast(f"{node.name}.floats", node.inputs[0], floats, dtype, FLOAT32),
        Node("Reduce", f"{node.name}.reduce", (floats,), (result,), attributes),
        cast(node.name, result, output, FLOAT32, dtype),
    ]


def _argument(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    attributes = {
        "axis": only_axis(view, 0),
        "last": int(view.integer("select_last_index", 0) != 0),
        "largest": int(node.op_type == "ArgMax"),
    }
    return [Node("ArgMost", node.name, node.inputs, node.outputs, attributes)]


def _running(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "axis" in node.attributes:
        return None
    attributes = {
        "axis": running_axis(view),
        "exclusive": int(view.integer("exclusive", 0) != 0),
        "reverse": int(view.integer("reverse", 0) != 0),
        "wrapping": wrapping(view.dtype(0)),
    }
    return [Node("CumSum", node.name, node.inputs[:1], node.outputs, attributes)]


def _top(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "count" in node.attributes:
        return None
    attributes = {"axis": only_axis(view, -1), "count": top_count(view), "largest": view.integer("largest", 1)}
    return [Node("TopK", node.name, node.inputs[:1], node.outputs, attributes)]


_RULES = {
    **dict.fromkeys(REDUCTIONS, _reduce),
    "ArgMax": _argument,
    "ArgMin": _argument,
    "CumSum": _running,
    "TopK": _top,
}


def lower_reductions(graph: Graph) -> Graph:
    """Return the graph with Reduce, ArgMost, CumSum and TopK as what goes along axes, but for averages of images."""
    return rewrite_nodes(graph, _RULES)
