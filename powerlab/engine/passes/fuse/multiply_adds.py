"""A product that only a sum reads, element by element, becomes part of the sum: one step instead of two over memory.

So do norms without statistics (NoNorm of MobileBERT, https://arxiv.org/abs/2004.02984), scaled residuals and rotated
positions. A linear layer that comes later adds the product itself, at no cost (``codegen/row_sums.py``); a convolution
has taken its sum before (``fuse_residuals``).
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.legalize.elementwise import each, strided
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_ADD, _MULTIPLY, _BOTH = (strided(stem, FLOAT32) for stem in ("add", "mul", "mul_add"))


def fuse_multiply_adds(graph: Graph) -> Graph:
    """Return the graph with every sum fused with a product of its shape that nobody else reads."""
    if all(node.attributes.get("kernel") != _MULTIPLY for node in graph.nodes):
        return graph
    position = {node.outputs[0]: index for index, node in enumerate(graph.nodes)}

    def fuse(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
        if not (node.attributes.get("kernel") == _ADD or (node.op_type == "Add" and is_linear(node))):
            return None
        output = node.outputs[0]
        for name, other in (node.inputs, node.inputs[::-1]):
            product = sole(name)
            if product is None or product.attributes.get("kernel") != _MULTIPLY:
                continue
            layer = _linear_layer(other, sole)
            adds_itself = layer is not None and position[layer.outputs[0]] > position[name]
            if rewriter.shape(name) == rewriter.shape(output) and not adds_itself:
                # The kernel goes along the first of them.
                factors = sorted(product.inputs, key=lambda factor: rewriter.shape(factor) != rewriter.shape(output))
                return each(node.name, _BOTH, (*factors, other), output, FLOAT32), product
        return None

    return fuse_into_producers(graph, fuse)


def _linear_layer(name: str, sole: Sole) -> Node | None:
    """Return the linear layer whose result a tensor is, seen as it may be, and that can add something to it."""
    made = sole(name)
    while made is not None and made.op_type == "Reshape":
        made = sole(made.inputs[0])
    return made if made is not None and made.op_type == "FusedGemm" and is_linear(made) else None
