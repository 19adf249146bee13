"""Function fusion: a function of one number becomes the end of the convolution or product nobody else reads."""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import ends_in_function
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

ENDING = ("FusedConv", "FusedGemm")
"""Operators with the attribute ``function``; the function's numbers are attributes beside it."""

FUSED = (
    "Elu",
    "Gelu",
    "GeluTanh",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "Sigmoid",
    "Silu",
    "Softplus",
    "Swish",
    "Tanh",
)
"""Those that ``kernels/epilogue.hpp`` has."""


def _fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
    before = sole(node.inputs[0]) if node.op_type in FUSED else None
    if before is None or before.op_type not in ENDING or ends_in_function(before):
        return None
    attributes = {**before.attributes, "function": node.op_type, **node.attributes}
    return Node(before.op_type, before.name, before.inputs, node.outputs, attributes), before


def fuse_functions(graph: Graph) -> Graph:
    """Return the graph with every function fused that can be."""
    return fuse_into_producers(graph, _fuse)
