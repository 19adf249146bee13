"""Relu, LeakyRelu, PRelu of one slope and Clip become Clamp; Softmax gets one axis, LogSoftmax and Hardmax the last."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, Clamp, clip_bounds, has_known_bounds, leak, softmax_axis
from powerlab.engine.ops.casting import whole_range
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import each, elementwise, strided
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _clamp(view: NodeView, bounds: Clamp) -> Sequence[Node]:
    node = view.node
    low, high = bounds
    return [Node("Clamp", node.name, node.inputs[:1], node.outputs, {"clamp": (min(low, high), high)})]


def _relu(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, dtype = view.node, view.dtype(0)
    if dtype != FLOAT32:
        zero = rewriter.constant(f"{node.outputs[0]}.zero", np.zeros((), dtype))
        return [each(node.name, strided("max", dtype), (node.inputs[0], zero), node.outputs[0], dtype)]
    return _clamp(view, (0.0, math.inf))


def _leaky_relu(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node("Clamp", node.name, node.inputs, node.outputs, {"clamp": NO_CLAMP, "slope": leak(view)})]


def _parametric_relu(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    """A slope for all elements is that of a LeakyRelu; any other is Elementwise."""
    node, slope = view.node, view.constant(1)
    if view.dtype(0) != FLOAT32 or slope is None or slope.size != 1 or slope.ndim > len(view.shape(0)):
        return elementwise(view, rewriter)
    clamp = {"clamp": NO_CLAMP, "slope": float(slope.reshape(()))}
    return [Node("Clamp", node.name, node.inputs[:1], node.outputs, clamp)]


def _clip(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    if view.dtype(0) == FLOAT32 and has_known_bounds(view):
        return _clamp(view, clip_bounds(view))
    node, dtype = view.node, view.dtype(0)
    widest = (-math.inf, math.inf) if dtype == FLOAT32 else whole_range(dtype)
    ends = [rewriter.constant(f"{node.outputs[0]}.bound", np.asarray(bound, dtype)) for bound in widest]
    bounds = [node.inputs[index] if view.has(index) else end for index, end in enumerate(ends, start=1)]
    return [each(node.name, strided("clip", dtype), (node.inputs[0], *bounds), node.outputs[0], dtype)]


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
                Node(node.op_type, node.name, (rows,), (result,), {"axis": 1}),
                view_node(f"{node.name}.shape", result, node.outputs[0]),
            ]
        axis = wide[0] if wide else axis
    if node.op_type == "Softmax" or math.prod(shape[axis + 1 :]) == 1:
        return [Node(node.op_type, node.name, node.inputs, node.outputs, {**_masked(node), "axis": axis})]
    order = [index for index in range(len(shape)) if index != axis] + [axis]
    back = tuple(int(index) for index in np.argsort(order))
    turned = tuple(shape[index] for index in order)
    rows, result = (rewriter.tensor(f"{node.outputs[0]}.{base_name}", turned) for base_name in ("rows", "turned"))
    return [
        Node("Transpose", f"{node.name}.rows", node.inputs, (rows,), {"perm": tuple(order)}),
        Node(node.op_type, node.name, (rows,), (result,), {"axis": len(shape) - 1}),
        Node("Transpose", f"{node.name}.back", (result,), node.outputs, {"perm": back}),
    ]


def _masked(node: Node) -> dict[str, object]:
    """Keep what makes rows of -inf zeros (attention's masks do)."""
    return {"masked": 1} if node.attributes.get("masked") else {}


_RULES = {
    "Clip": _clip,
    "Hardmax": _softmax,
    "LeakyRelu": _leaky_relu,
    "LogSoftmax": _softmax,
    "PRelu": _parametric_relu,
    "Relu": _relu,
    "Softmax": _softmax,
}


def lower_activations(graph: Graph) -> Graph:
    """Return the graph with Clamp, Softmax, LogSoftmax and Hardmax as its only activations."""
    return rewrite_nodes(graph, _RULES)
