"""Activation fusion: a Clamp becomes the slope and clamp of the node before it."""

from __future__ import annotations

from typing import cast

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_SLOPE, Clamp, ends_in_function, is_linear, slope_of
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_MULTIPLYING = ("FusedConv", "FusedConvTranspose", "FusedGemm", "FusedVolumeConv", "Multiply")
CLAMPING = ("Add", "Clamp", "ScaleShift", *_MULTIPLYING)
"""Operators with the attribute ``clamp``."""


def combined(first: Clamp, then: Clamp) -> Clamp:
    """Return the clamp that does what ``first`` and ``then`` do one after the other."""
    low, high = then
    return min(max(first[0], low), high), min(max(first[1], low), high)


def _fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
    before = sole(node.inputs[0]) if node.op_type == "Clamp" else None
    if before is None or before.op_type not in CLAMPING or ends_in_function(before):
        return None
    slope = slope_of(node)
    if slope != NO_SLOPE:
        if not is_linear(before):
            return None
        attributes = {**before.attributes, "clamp": node.attributes["clamp"], "slope": slope}
        return Node(before.op_type, before.name, before.inputs, node.outputs, attributes), before
    clamp = combined(cast("Clamp", before.attributes["clamp"]), cast("Clamp", node.attributes["clamp"]))
    return Node(before.op_type, before.name, before.inputs, node.outputs, {**before.attributes, "clamp": clamp}), before


def fuse_clamps(graph: Graph) -> Graph:
    """Return the graph with every Clamp fused that follows a clamping node nobody else reads."""
    return fuse_into_producers(graph, _fuse)
