"""Squares and cubes become products: a power of any exponent costs about fifty of them."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _power(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    exponent = view.constant(1)
    if view.dtype(0).kind != "f" or exponent is None or exponent.size != 1 or exponent.ndim > len(view.shape(0)):
        return None
    times, add, base = float(exponent.reshape(-1)[0]), Expansion(view, rewriter), view.node.inputs[0]
    if times not in (2, 3):
        return None
    product = add("Mul", base, base) if times == 3 else base
    add("Mul", product, base, output=view.node.outputs[0])
    return add.nodes


def expand_powers(graph: Graph) -> Graph:
    """Return the graph without Pow by the constants 2 and 3."""
    return rewrite_nodes(graph, {"Pow": _power})
