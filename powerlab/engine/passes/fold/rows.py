"""What is added to every row of a product with a constant matrix, or multiplies it, goes into the product.

Exporters write a linear layer of sequences as MatMul and Add, and perhaps a Mul by the scale of the layer (H. Touvron
et al., https://arxiv.org/abs/2103.17239). The product is one of all rows, so a view stands between; it goes behind.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.legalize.elementwise import strided
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_among

_ADD, _MULTIPLY = strided("add", FLOAT32), strided("mul", FLOAT32)


def fold_rows(graph: Graph) -> Graph:
    """Return the graph with every sum or product of a constant row folded with what a FusedGemm alone makes for it."""
    if "FusedGemm" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    folded: set[str] = set()
    for node in graph.nodes:
        found = _view_and_row(node, sole, rewriter)
        product = found[0].inputs[0] if found else ""
        gemm = made[product] if product in folded else sole(product)
        if found is None or gemm is None or gemm.op_type != "FusedGemm" or not is_linear(gemm):
            made[node.outputs[0]] = node
            continue
        view, row = found
        rows = rewriter.tensor(f"{node.outputs[0]}.rows", rewriter.shape(gemm.outputs[0]))
        width = rewriter.shape(rows)[1]
        wide = np.broadcast_to(row, (width,)).astype(np.float32)
        weight, before = gemm.inputs[1], rewriter.value(gemm.inputs[2]) if gemm.inputs[2] else np.zeros(1, np.float32)
        if node.attributes["kernel"] == _ADD:
            bias = before + wide
        else:
            bias = before * wide
            scaled = derived(rewriter.kept(weight), rewriter.shape(weight), partial(np.multiply, wide[:, None]))
            weight = rewriter.constant(f"{node.outputs[0]}.weight", scaled)
        added = rewriter.constant(f"{node.outputs[0]}.bias", bias) if gemm.inputs[2] or np.any(bias) else ""
        del made[gemm.outputs[0]], made[view.outputs[0]]
        made[rows] = Node("FusedGemm", gemm.name, (gemm.inputs[0], weight, added), (rows,), gemm.attributes)
        made[node.outputs[0]] = view_node(node.name, rows, node.outputs[0])
        folded.add(rows)
    return rewriter.finish(tuple(made.values()))


def _view_and_row(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Array] | None:
    """Return the view that a sum or product reads, if it keeps the last axis, and the other operand, a constant row."""
    if node.op_type != "Elementwise" or node.attributes["kernel"] not in (_ADD, _MULTIPLY):
        return None
    for tensor, constant in (node.inputs, node.inputs[::-1]):
        view = sole(tensor)
        if view is None or view.op_type != "Reshape" or constant not in rewriter.graph.constants:
            continue
        shape, row = rewriter.shape(tensor), rewriter.shape(constant)
        last = (rewriter.shape(view.inputs[0]) or (0,))[-1]  # a single number has no axis
        keeps = len(shape) > 1 and shape[-1] == last and rewriter.shape(node.outputs[0]) == shape
        if keeps and len(row) <= len(shape) and row in ((1,) * len(row), (1,) * (len(row) - 1) + (last,)):
            return view, rewriter.value(constant).reshape(-1)
    return None
