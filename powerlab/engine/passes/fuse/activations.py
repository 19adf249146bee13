"""Activation fusion: a Clamp becomes the slope and clamp of the node before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_SLOPE, Clamp, ends_in_function, is_linear, slope_of
from powerlab.engine.passes.fuse.ends import fuse_ends

_MULTIPLYING = ("FusedConv", "FusedConvTranspose", "FusedGemm", "FusedVolumeConv", "Multiply")
CLAMPING = ("Add", "Clamp", "ScaleShift", *_MULTIPLYING)
"""Operators with the attribute ``clamp``."""


def combined(first: Clamp, then: Clamp) -> Clamp:
    """Return the clamp that does what ``first`` and ``then`` do one after the other."""
    low, high = then
    return min(max(first[0], low), high), min(max(first[1], low), high)


def fuse_clamps(graph: Graph) -> Graph:
    """Return the graph with every Clamp fused that follows a clamping node nobody else reads."""
    return fuse_ends(graph, ("Clamp",), _ended)


def fuse_norm_clamps(graph: Graph) -> Graph:
    """Return the graph with every Clamp fused that follows a GroupNorm nobody else reads."""
    return fuse_ends(
        graph, ("Clamp",), lambda node, clamp: _clamped(node, clamp) if node.op_type == "GroupNorm" else None
    )


def _ended(node: Node, clamp: Node) -> Mapping[str, object] | None:
    return _clamped(node, clamp) if node.op_type in CLAMPING and not ends_in_function(node) else None


def _clamped(node: Node, clamp: Node) -> Mapping[str, object] | None:
    slope = slope_of(clamp)
    if slope != NO_SLOPE:
        if not is_linear(node):
            return None
        return {**node.attributes, "clamp": clamp.attributes["clamp"], "slope": slope}
    both = combined(cast("Clamp", node.attributes["clamp"]), cast("Clamp", clamp.attributes["clamp"]))
    return {**node.attributes, "clamp": both}
