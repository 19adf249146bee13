"""Batch norms that train take in what stands around them, so that images are read and written less often.

The clamp behind a norm becomes its own, and the clamp's gradient part of the norm's, which computes anew what was
clamped, from what it reads anyway. A sum with the gradient of the norm's input, as of several layers that read the same
channels (G. Huang et al., https://arxiv.org/abs/1608.06993), is made there, too.
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, is_linear, slope_of
from powerlab.engine.passes.rewriting import Fuse, Rewriter, Sole, fuse_into_producers

_OWN_INPUTS = 6
"""Of a gradient that adds nothing."""


def _norm(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
    """Take a Clamp into the BatchNorm before it."""
    norm = sole(node.inputs[0]) if node.op_type == "Clamp" else None
    if norm is None or norm.op_type != "BatchNorm" or not is_linear(norm):
        return None
    return _activated(norm, norm.inputs, (node.outputs[0], *norm.outputs[1:]), node), norm


def _gradient(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    """Take the gradient of a BatchNorm's clamp into that of the norm."""
    before = sole(node.inputs[1]) if node.op_type == "BatchNormGradient" else None
    if before is None or before.op_type != "ClampGradient" or not is_linear(node):
        return None
    norm = rewriter.producer(before.inputs[0])
    if norm is None or norm.op_type != "BatchNorm" or norm.inputs[:3] != (node.inputs[0], *node.inputs[2:4]):
        return None
    if _activation(norm) != _activation(before):
        return None
    return _activated(node, (node.inputs[0], before.inputs[1], *node.inputs[2:]), node.outputs, before), before


def _sums(graph: Graph) -> Fuse:
    """Return what takes a sum with the gradient of a BatchNorm's images into that gradient.

    It moves to where the sum is made, so nothing in between may read the gradients of its scale and shift.
    """
    readers = graph.consumers()

    def fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
        if node.op_type != "Add" or not is_linear(node):
            return None
        for tensor, other in zip(node.inputs, reversed(node.inputs), strict=True):
            gradient = sole(tensor)
            if gradient is None or gradient.op_type != "BatchNormGradient" or len(gradient.inputs) > _OWN_INPUTS:
                continue
            if any(readers[name] for name in gradient.outputs[1:] if name):
                continue
            outputs = (node.outputs[0], *gradient.outputs[1:])
            return _activated(gradient, (*gradient.inputs, other), outputs, gradient), gradient
        return None

    return fuse


def _activation(node: Node) -> tuple[object, float]:
    return node.attributes.get("clamp", NO_CLAMP), slope_of(node)


def _activated(node: Node, inputs: tuple[str, ...], outputs: tuple[str, ...], clamping: Node) -> Node:
    clamp, slope = _activation(clamping)
    return Node(node.op_type, node.name, inputs, outputs, {**node.attributes, "clamp": clamp, "slope": slope})


def fuse_norms(graph: Graph) -> Graph:
    """Return an optimised graph with clamps, their gradients and sums fused into batch norms that train."""
    for fuse in (_norm, _gradient):
        graph = fuse_into_producers(graph, fuse)
    return fuse_into_producers(graph, _sums(graph))
