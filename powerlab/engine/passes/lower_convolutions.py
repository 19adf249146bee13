"""Conv becomes FusedConv with explicit padding; zeros a Pad puts around its image become padding too."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.graph import Graph, Node
from powerlab.engine.operators.activation import NO_CLAMP
from powerlab.engine.operators.convolution import conv_windows
from powerlab.engine.operators.indexing import padding
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _conv(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    windows = conv_windows(view)
    for index in (1, 2) if view.has(2) else (1,):
        view.known(index)
    source, extra = _without_pad(node.inputs[0], rewriter)
    attributes = {
        "strides": windows.strides,
        "pads": tuple(own + added for own, added in zip(windows.pads_given, extra, strict=True)),
        "dilations": windows.dilations,
        "group": view.integer("group", 1),
        "clamp": NO_CLAMP,
    }
    return [Node("FusedConv", node.name, (source, node.inputs[1], node.input(2), ""), node.outputs, attributes)]


def _without_pad(source: str, rewriter: Rewriter) -> tuple[str, tuple[int, int, int, int]]:
    """Return the tensor before a Pad of height and width, and its (top, left, bottom, right)."""
    pad = rewriter.producer(source)
    if pad is not None and pad.op_type == "Pad":
        batch, channels, (top, bottom), (left, right) = padding(NodeView.of(rewriter.graph, pad))
        if batch == channels == (0, 0):
            return pad.inputs[0], (top, left, bottom, right)
    return source, (0, 0, 0, 0)


def lower_convolutions(graph: Graph) -> Graph:
    """Return the graph with FusedConv as its only convolution."""
    return rewrite_nodes(graph, {"Conv": _conv})
