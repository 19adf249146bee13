"""Pools get explicit windows; a mean over the whole image becomes GlobalAveragePool. LRN gets all its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.graph import Graph, Node
from powerlab.engine.operators.pooling import pool_windows, reduced_axes
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.lower_views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _pool(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "kernel" in node.attributes:
        return None
    windows = pool_windows(view)
    attributes: dict[str, object] = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads}
    if node.op_type == "AveragePool":
        if windows.kernel == view.shape(0)[2:] and not any(windows.pads):
            return [Node("GlobalAveragePool", node.name, node.inputs, node.outputs)]
        counts_padding = bool(view.integer("count_include_pad", 0)) and any(windows.pads_given)
        if counts_padding and _reaches_past(windows.pads, windows.pads_given):
            view.fail("counts its padding while ceil_mode lets windows reach past it, which the engine does not")
        attributes["count_include_pad"] = counts_padding
    return [Node(node.op_type, node.name, node.inputs, node.outputs, attributes)]


def _reaches_past(pads: tuple[int, ...], given: tuple[int, ...]) -> bool:
    return any(pad > asked for pad, asked in zip(pads, given, strict=True))


def _reduce_mean(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, shape = view.node, view.shape(0)
    if len(shape) != 4 or reduced_axes(view) != (2, 3):
        view.fail(f"averages axes {reduced_axes(view)} of {shape}; the engine averages height and width of images only")
    output = node.outputs[0]
    if view.integer("keepdims", 1):
        return [Node("GlobalAveragePool", node.name, node.inputs[:1], (output,))]
    mean = rewriter.tensor(f"{output}.mean", (*shape[:2], 1, 1))
    return [
        Node("GlobalAveragePool", node.name, node.inputs[:1], (mean,)),
        view_node(f"{node.name}.squeeze", mean, output),
    ]


def _lrn(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    attributes = {
        "size": view.integer("size", 1),
        "alpha": view.number("alpha", 1e-4),
        "beta": view.number("beta", 0.75),
        "bias": view.number("bias", 1.0),
    }
    return [Node("LRN", node.name, node.inputs, node.outputs, attributes)]


def lower_pools(graph: Graph) -> Graph:
    """Return the graph with pools and LRN in the form the native core takes."""
    return rewrite_nodes(graph, {"AveragePool": _pool, "LRN": _lrn, "MaxPool": _pool, "ReduceMean": _reduce_mean})
