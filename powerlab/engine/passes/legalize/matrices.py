"""Gemm and MatMul become FusedGemm where the right side is a constant matrix, else Product.

FusedGemm's weight is (out, in): factors and transposes go into it. A Product is that of two general tensors, matrices
in their last two axes, with numpy's broadcasting of all axes before. Its attributes: ``alpha``, a factor; ``left`` and
``right``, how the axes of each side are reordered before, empty where they are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import each, strided
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

Order = tuple[int, ...]


def product(name: str, inputs: tuple[str, str], output: str, alpha: float = 1.0, *orders: Order) -> Node:
    """Return a Product; ``orders`` are those of the left and the right side."""
    left, right = orders or ((), ())
    return Node("Product", name, inputs, (output,), {"alpha": alpha, "left": left, "right": right})


def _transposed(matrix: Array) -> Array:
    return matrix.T


def _gemm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    if view.integer("transA", 0) or view.is_known(0) or not view.is_known(1):
        return _computed_gemm(view, rewriter)
    node, output = view.node, view.node.outputs[0]
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
    if not _adds_a_row(view):
        return _with_sum(
            view,
            rewriter,
            lambda made: Node("FusedGemm", node.name, (node.inputs[0], weight, ""), (made,), {"clamp": NO_CLAMP}),
        )
    bias = ""
    if view.has(2):
        vector = np.broadcast_to(view.value(2).reshape(-1), shape[:1]) * np.float32(beta)
        bias = rewriter.constant(f"{output}.bias", vector)
    return [Node("FusedGemm", node.name, (node.inputs[0], weight, bias), (output,), {"clamp": NO_CLAMP})]


def _adds_a_row(view: NodeView) -> bool:
    """Say whether a Gemm adds one known number an output, or nothing."""
    return not view.has(2) or (view.is_known(2) and (len(view.shape(2)) < 2 or view.shape(2)[0] == 1))


def _computed_gemm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    orders = tuple((1, 0) if view.integer(name, 0) else () for name in ("transA", "transB"))
    sides, alpha = (node.inputs[0], node.inputs[1]), view.number("alpha", 1.0)
    return _with_sum(view, rewriter, lambda made: product(node.name, sides, made, alpha, *orders))


def _with_sum(view: NodeView, rewriter: Rewriter, multiply: Callable[[str], Node]) -> Sequence[Node]:
    """Return the nodes of a Gemm that adds what a run computes; ``multiply`` makes the product of a name."""
    node, output = view.node, view.node.outputs[0]
    beta = view.number("beta", 1.0) if view.has(2) else 0.0
    if beta == 0.0:
        return [multiply(output)]
    made = rewriter.tensor(f"{output}.product", rewriter.graph.shape(output))
    nodes = [multiply(made)]
    added = node.inputs[2]
    if beta != 1.0:
        factor = rewriter.constant(f"{output}.beta", np.asarray(beta, np.float32))
        scaled = rewriter.tensor(f"{output}.added", view.shape(2))
        nodes.append(each(f"{node.name}.beta", strided("mul", FLOAT32), (added, factor), scaled, FLOAT32))
        added = scaled
    return [*nodes, each(f"{node.name}.sum", strided("add", FLOAT32), (made, added), output, FLOAT32)]


def _matmul(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    left, right = view.shape(0), view.shape(1)
    if view.is_known(1) and not view.is_known(0) and len(right) == 2 and len(left) > 1:
        return _by_a_constant(view, rewriter)
    if len(left) > 1 and len(right) > 1:
        return [product(node.name, (node.inputs[0], node.inputs[1]), output)]
    # A vector on the left is a row, on the right a column.
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    sides = []
    nodes: list[Node] = []
    for name, shape, wanted in ((node.inputs[0], left, rows), (node.inputs[1], right, columns)):
        sides.append(name if shape == wanted else rewriter.tensor(f"{output}.side", wanted))
        if shape != wanted:
            nodes.append(view_node(f"{node.name}.side", name, sides[-1]))
    batch = np.broadcast_shapes(rows[:-2], columns[:-2])
    made = rewriter.tensor(f"{output}.product", (*batch, rows[-2], columns[-1]))
    return [
        *nodes,
        product(node.name, (sides[0], sides[1]), made),
        view_node(f"{node.name}.shape", made, output),
    ]


def _by_a_constant(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output, shape = view.node, view.node.outputs[0], view.shape(0)
    columns = view.shape(1)[1]
    weight = rewriter.constant(f"{output}.weight", derived(view.known(1), view.shape(1)[::-1], _transposed))
    attributes = {"clamp": NO_CLAMP}
    if len(shape) == 2:
        return [Node("FusedGemm", node.name, (node.inputs[0], weight, ""), (output,), attributes)]
    rows = math.prod(shape[:-1])
    flat = rewriter.tensor(f"{output}.rows", (rows, shape[-1]))
    made = rewriter.tensor(f"{output}.product", (rows, columns))
    return [
        view_node(f"{node.name}.rows", node.inputs[0], flat),
        Node("FusedGemm", node.name, (flat, weight, ""), (made,), attributes),
        view_node(f"{node.name}.shape", made, output),
    ]


def lower_matrices(graph: Graph) -> Graph:
    """Return the graph with FusedGemm and Product as its only matrix products."""
    return rewrite_nodes(graph, {"Gemm": _gemm, "MatMul": _matmul})
