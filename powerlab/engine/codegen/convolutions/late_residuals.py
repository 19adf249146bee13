"""A sum of what a convolution's activation made and another tensor is computed as the convolution ends.

Darknet's networks add so (J. Redmon and A. Farhadi, YOLOv3, https://arxiv.org/abs/1804.02767); elsewhere a residual
comes before the activation, and :mod:`powerlab.engine.passes.fuse.residuals` sees to it. This is for the kernels of the
cores alone.
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import ends_in_function, is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers


def with_late_residuals(graph: Graph) -> Graph:
    """Return an optimised graph with such sums in the convolutions; of two candidates the later one takes it."""
    if all(node.op_type != "Add" for node in graph.nodes):
        return graph
    position = {node.outputs[0]: index for index, node in enumerate(graph.nodes)}

    def fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
        if node.op_type != "Add" or not is_linear(node):
            return None
        pairs = zip(node.inputs, reversed(node.inputs), strict=True)
        for tensor, residual in sorted(pairs, key=lambda pair: -position.get(pair[0], -1)):
            conv = sole(tensor)
            if conv is None or conv.op_type != "FusedConv" or conv.input(3) or ends_in_function(conv):
                continue
            attributes = {**conv.attributes, "adds_last": True}
            return Node("FusedConv", conv.name, (*conv.inputs[:3], residual), node.outputs, attributes), conv
        return None

    return fuse_into_producers(graph, fuse)
