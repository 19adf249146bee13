"""Known unsigned weights around 128 become signed ones around 0, the one form that kernels of integers take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.constants import Recipe, Value, value_of
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.quantization import UINT8
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_HALF = 128


def _signed(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if not (view.is_known(0) and view.is_known(2)) or view.dtype(0) != UINT8 or np.any(view.value(2) != _HALF):
        return None
    weights = rewriter.constant(f"{node.inputs[0]}.signed", _shifted(view.known(0)))
    return [Node(node.op_type, node.name, (weights, node.inputs[1]), node.outputs, node.attributes)]


def _shifted(weights: Value) -> Value:
    def shift() -> Array:
        return (value_of(weights).astype(np.int16) - _HALF).astype(np.int8)

    if not isinstance(weights, Recipe):
        return shift()
    return Recipe(shape=weights.shape, dtype=np.dtype(np.int8), make=shift)


def sign_weights(graph: Graph) -> Graph:
    """Return the graph with weights in int8 wherever that has all their values."""
    return rewrite_nodes(graph, {"DequantizeLinear": _signed})
