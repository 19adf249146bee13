"""Weights that are still quantized become floats, and what depends on them alone is folded.

This comes behind the passes that compute with integers: what they left runs in float32.
"""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.engine.ir.constants import Recipe, Value, value_of
from powerlab.engine.ir.graph import Array, Graph
from powerlab.engine.ops.quantization import check_scales, dequantized_value
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.fold.constants import fold_constants


def fold_quantized_constants(graph: Graph) -> Graph:
    """Return the graph without DequantizeLinear of constants.

    Raises:
        PowerlabError: a scale expresses nothing.
    """
    floats: dict[str, Value] = {}
    for node in graph.nodes:
        if node.op_type == "DequantizeLinear" and (view := NodeView.of(graph, node)).is_constant():
            check_scales(view, 1)
            floats[node.outputs[0]] = _floats(view)
    return _without(graph, floats) if floats else graph


def _floats(view: NodeView) -> Value:
    known = view.known(0)
    if not isinstance(known, Recipe):
        return dequantized_value(view, known)

    def make() -> Array:
        return dequantized_value(view, value_of(known))

    return Recipe(shape=known.shape, dtype=FLOAT32, make=make)


def _without(graph: Graph, floats: Mapping[str, Value]) -> Graph:
    nodes = [node for node in graph.nodes if node.outputs[0] not in floats]
    return fold_constants(graph.rewritten(nodes, constants=floats))
