"""Residual fusion: an Add whose one input is a convolution nobody else reads becomes part of that convolution.

The other input cannot depend on the convolution, because only the Add reads it; the fused convolution stands where the
Add stood, so the residual is there before it. A convolution that already clamps or adds is left alone.
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers


def fuse_residuals(graph: Graph) -> Graph:
    """Return the graph with Add fused into convolutions; of two candidates the later takes the other as residual."""
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
            if conv is None or conv.op_type != "FusedConv" or conv.inputs[3] or not is_linear(conv):
                continue
            attributes = {**conv.attributes, **node.attributes}
            return Node("FusedConv", conv.name, (*conv.inputs[:3], residual), node.outputs, attributes), conv
        return None

    return fuse_into_producers(graph, fuse)
