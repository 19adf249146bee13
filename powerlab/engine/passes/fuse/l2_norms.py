"""x / max(|x|, epsilon), as PyTorch's ``normalize`` is exported, and LpNormalization become RowNorm.

That is along the last axes. |x| is the root of the sum of squares, ReduceL2; epsilon may be missing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.normalisation import normalised_axes
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.fuse.layer_norms import first_reduced
from powerlab.engine.passes.rewriting import one_number

_SMALLEST = float(np.finfo(np.float32).tiny)
"""A norm to divide by where LpNormalization leaves zeros as they are."""


def fuse_l2_norms(graph: Graph) -> Graph:
    """Return the graph with RowNorm in place of divisions by a norm that nobody else reads."""
    if graph.operators.isdisjoint(("ReduceL2", "LpNormalization")):
        return graph
    made, consumers = graph.producers(), graph.consumers()
    outputs = graph.output_names()
    alone = {name for name, readers in consumers.items() if len(readers) == 1 and name not in outputs}
    return graph.rewritten([_fused(graph, node, made, alone) or node for node in graph.nodes])


def _fused(graph: Graph, node: Node, made: Mapping[str, Node], alone: set[str]) -> Node | None:
    if node.op_type == "LpNormalization":
        view = NodeView.of(graph, node)
        axes, rank = normalised_axes(view), len(graph.shape(node.inputs[0]))
        last = tuple(axes) == tuple(range(axes[0], rank))
        return _row_norm(node, node.inputs[0], axes[0], _SMALLEST) if last and view.integer("p", 2) == 2 else None
    if node.op_type != "Div":
        return None
    x, norm = node.inputs
    epsilon, below = 0.0, made.get(norm)
    if below is not None and below.op_type in ("Clip", "Max") and norm in alone:
        least = one_number(graph, below.input(1)) if below.input(1) else None
        if least is None or least < 0 or below.input(2) or len(below.inputs) > 3:
            return None
        norm, epsilon = below.inputs[0], least
        below = made.get(norm)
    axis = first_reduced(graph, below, "ReduceL2", x) if norm in alone else None
    return None if axis is None else _row_norm(node, x, axis, epsilon)


def _row_norm(node: Node, x: str, axis: int, epsilon: float) -> Node:
    return Node("RowNorm", node.name, (x,), node.outputs, {"kernel": "l2_norm", "axis": axis, "epsilon": epsilon})
