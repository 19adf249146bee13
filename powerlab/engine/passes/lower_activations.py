"""Relu, LeakyRelu and Clip become Clamp; Softmax gets one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.graph import Graph, Node
from powerlab.engine.operators.activation import NO_CLAMP, Clamp, clip_bounds, leak, softmax_axis
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.lower_views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _clamp(view: NodeView, bounds: Clamp) -> Sequence[Node]:
    node = view.node
    low, high = bounds
    return [Node("Clamp", node.name, node.inputs[:1], node.outputs, {"clamp": (min(low, high), high)})]


def _relu(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    return _clamp(view, (0.0, math.inf))


def _leaky_relu(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node("Clamp", node.name, node.inputs, node.outputs, {"clamp": NO_CLAMP, "slope": leak(view)})]


def _clip(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    return _clamp(view, clip_bounds(view))


def _softmax(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, shape, axis = view.node, view.shape(0), softmax_axis(view)
    if view.integer("flattens", 0):
        wide = [index for index in range(axis, len(shape)) if shape[index] != 1]
        if len(wide) > 1:
            matrix = (math.prod(shape[:axis]), math.prod(shape[axis:]))
            rows = rewriter.tensor(f"{node.outputs[0]}.rows", matrix)
            result = rewriter.tensor(f"{node.outputs[0]}.matrix", matrix)
            return [
                view_node(f"{node.name}.rows", node.inputs[0], rows),
                Node("Softmax", node.name, (rows,), (result,), {"axis": 1}),
                view_node(f"{node.name}.shape", result, node.outputs[0]),
            ]
        axis = wide[0] if wide else axis
    return [Node("Softmax", node.name, node.inputs, node.outputs, {"axis": axis})]


def lower_activations(graph: Graph) -> Graph:
    """Return the graph with Clamp and Softmax as its only activations."""
    return rewrite_nodes(graph, {"Clip": _clip, "LeakyRelu": _leaky_relu, "Relu": _relu, "Softmax": _softmax})
