"""Function fusion: a function of one number becomes the end of the convolution or product nobody else reads."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import ends_in_function
from powerlab.engine.passes.fuse.ends import fuse_ends

ENDING = ("FusedConv", "FusedGemm", "QuantConv")
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


def _may_end(node: Node) -> bool:
    """Tell whether a node can end in a function: one on bytes where it makes floats of nothing but its sums."""
    bytes_alone = node.op_type == "QuantConv" and (not node.attributes.get("floats") or bool(node.input(4)))
    return node.op_type in ENDING and not bytes_alone and not ends_in_function(node)


def fuse_functions(graph: Graph) -> Graph:
    """Return the graph with every function fused that can be."""
    return fuse_ends(graph, FUSED, _ended)


def _ended(node: Node, function: Node) -> Mapping[str, object] | None:
    return {**node.attributes, "function": function.op_type, **function.attributes} if _may_end(node) else None
