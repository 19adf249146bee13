"""Gemm and MatMul with a constant become FusedGemm, whose weight is (out, in): factors and transposes go into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from powerlab.engine.constants import derived
from powerlab.engine.graph import Array, Graph, Node
from powerlab.engine.operators.activation import NO_CLAMP
from powerlab.engine.operators.view import NodeView
from powerlab.engine.passes.lower_views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _transposed(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix.T)


def _gemm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    if view.integer("transA", 0):
        view.fail("transposes its first input (transA), which the engine does for constants only")
    alpha, beta = view.number("alpha", 1.0), view.number("beta", 1.0)
    weight, shape = node.inputs[1], view.shape(1)
    matrix = view.known(1)
    if not view.integer("transB", 0):
        shape = shape[::-1]
        matrix = derived(matrix, shape, _transposed)
    if alpha != 1.0:
        matrix = derived(matrix, shape, partial(np.multiply, np.float32(alpha)))
    if matrix is not view.known(1):
        weight = rewriter.constant(f"{output}.weight", matrix)
    bias = ""
    if view.has(2):
        rows = view.value(2)
        if rows.ndim == 2 and rows.shape[0] != 1:
            view.fail(f"adds a matrix of shape {rows.shape}; the engine adds one number an output")
        vector = np.broadcast_to(rows.reshape(-1), shape[:1]) * np.float32(beta)
        bias = rewriter.constant(f"{output}.bias", vector)
    return [Node("FusedGemm", node.name, (node.inputs[0], weight, bias), (output,), {"clamp": NO_CLAMP})]


def _matmul(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output, shape = view.node, view.node.outputs[0], view.shape(0)
    columns = view.shape(1)[1]
    weight = rewriter.constant(f"{output}.weight", derived(view.known(1), view.shape(1)[::-1], _transposed))
    attributes = {"clamp": NO_CLAMP}
    if len(shape) == 2:
        return [Node("FusedGemm", node.name, (node.inputs[0], weight, ""), (output,), attributes)]
    rows = math.prod(shape[:-1])
    flat = rewriter.tensor(f"{output}.rows", (rows, shape[-1]))
    product = rewriter.tensor(f"{output}.product", (rows, columns))
    return [
        view_node(f"{node.name}.rows", node.inputs[0], flat),
        Node("FusedGemm", node.name, (flat, weight, ""), (product,), attributes),
        view_node(f"{node.name}.shape", product, output),
    ]


def lower_matrices(graph: Graph) -> Graph:
    """Return the graph with FusedGemm as its only matrix product."""
    return rewrite_nodes(graph, {"Gemm": _gemm, "MatMul": _matmul})
