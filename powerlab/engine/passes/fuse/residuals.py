"""Residual fusion: an Add whose one input is a convolution nobody else reads becomes part of that convolution.

The other input cannot depend on the convolution, because only the Add reads it; the fused convolution stands where the
Add stood, so the residual is there before it. A convolution that already clamps or adds is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

Merge = Callable[[Node, Node], Mapping[str, object] | None]
"""Gives the attributes of a convolution with an Add in it, from both; None where it cannot add."""


def fuse_residuals(graph: Graph) -> Graph:
    """Return the graph with Add fused into convolutions; of two candidates the later takes the other as residual."""
    return with_sums(graph, _before_activation)


def with_sums(graph: Graph, merge: Merge) -> Graph:
    """Return the graph with Add fused into those convolutions without a residual for which ``merge`` has attributes."""
    if "Add" not in graph.operators:
        return graph
    position = {node.outputs[0]: index for index, node in enumerate(graph.nodes)}

    def fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
        if node.op_type != "Add":
            return None
        for tensor, residual in sorted(
            zip(node.inputs, reversed(node.inputs), strict=True),
            key=lambda pair: position.get(pair[0], -1),
            reverse=True,
        ):
            conv = sole(tensor)
            if conv is None or conv.op_type != "FusedConv" or conv.input(3):
                continue
            attributes = merge(conv, node)
            if attributes is not None:
                return Node("FusedConv", conv.name, (*conv.inputs[:3], residual), node.outputs, attributes), conv
        return None

    return fuse_into_producers(graph, fuse)


def _before_activation(conv: Node, add: Node) -> Mapping[str, object] | None:
    return {**conv.attributes, **add.attributes} if is_linear(conv) else None
