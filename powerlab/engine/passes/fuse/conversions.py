"""What stands between bytes and floats is part of making the ones of the others.

A function of what bytes stand for ends the Dequantize; one number a channel, by which floats are multiplied before they
are rounded, as squeeze-and-excitation does (J. Hu et al., https://arxiv.org/abs/1709.01507), is read by the Quantize.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.ops.activation import ends_in_function, is_linear
from powerlab.engine.passes.fuse.ends import fuse_ends
from powerlab.engine.passes.fuse.functions import FUSED
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers
from powerlab.engine.program.layout import WORD_BYTES


def fuse_conversions(graph: Graph) -> Graph:
    """Return the graph with functions and factors fused that stand beside bytes and that nobody else reads."""
    if graph.operators.isdisjoint(("Dequantize", "Quantize")):
        return graph
    return fuse_into_producers(fuse_ends(graph, FUSED, _ended), _scaled)


def _ended(node: Node, function: Node) -> Mapping[str, object] | None:
    if node.op_type != "Dequantize" or ends_in_function(node):
        return None
    return {**node.attributes, "function": function.op_type, **function.attributes}


def _scaled(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Return a Quantize that multiplies images of more channels than a word has by a computed number for each."""
    product = sole(node.inputs[0]) if node.op_type == "Quantize" and len(node.inputs) == 1 else None
    if product is None or product.op_type != "Multiply" or not is_linear(product):
        return None
    x, factors = product.inputs
    shape = rewriter.shape(x)
    if len(shape) != IMAGE_AXES or shape[1] <= WORD_BYTES or rewriter.is_constant(factors):
        return None
    if rewriter.shape(factors) != (*shape[:2], 1, 1) or shape[2:] == (1, 1):
        return None
    return replace(node, inputs=(x, factors)), product
