"""Normalisation of tensors by their own numbers: of groups of channels, or over any axes."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.normalisation import normalised_axes, normalised_groups
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _groups(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    attributes = {"groups": normalised_groups(view), "epsilon": view.number("epsilon", 1e-5), "clamp": NO_CLAMP}
    return [Node("GroupNorm", node.name, node.inputs, node.outputs, attributes)]


def _over_axes(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    """Return a Norm; its p is 0 where mean and variance are meant."""
    node = view.node
    p = view.integer("p", 2) if node.op_type == "LpNormalization" else 0
    return [Node("Norm", node.name, node.inputs, node.outputs, {"axes": normalised_axes(view), "p": p})]


_RULES = {
    "GroupNormalization": _groups,
    "InstanceNormalization": _groups,
    "LpNormalization": _over_axes,
    "MeanVarianceNormalization": _over_axes,
}


def lower_norms(graph: Graph) -> Graph:
    """Return the graph with GroupNorm and Norm as its only normalisations by a tensor's own numbers."""
    return rewrite_nodes(graph, _RULES)
