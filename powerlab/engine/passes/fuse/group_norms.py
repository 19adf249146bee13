"""Group normalisations as PyTorch exports them, around views, become one node of the image itself.

They are written as an instance normalisation of groups that count as channels, then a scale and a shift a channel (Y.
Wu, K. He, https://arxiv.org/abs/1803.08494). A GroupNorm does all that, and leaves the image in its layout.
"""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_IMAGE_AXES = 4


def fuse_group_norms(graph: Graph) -> Graph:
    """Return the graph with no view around a GroupNorm of images, and no ScaleShift that it alone feeds."""
    return fuse_into_producers(graph, _fused)


def _fused(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    norm = sole(node.inputs[0]) if node.op_type in ("Reshape", "ScaleShift") else None
    if norm is None or norm.op_type != "GroupNorm" or not all(map(rewriter.is_constant, norm.inputs[1:])):
        return None
    return _of_image(node, norm, sole, rewriter) if node.op_type == "Reshape" else _scaled(node, norm, rewriter)


def _of_image(node: Node, norm: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    view, shape = sole(norm.inputs[0]), rewriter.shape(node.outputs[0])
    if view is None or view.op_type != "Reshape" or rewriter.shape(view.inputs[0]) != shape:
        return None
    seen, groups = rewriter.shape(norm.inputs[0]), norm.attributes["groups"]
    if len(shape) != _IMAGE_AXES or seen[:2] != (shape[0], groups):
        return None
    return Node("GroupNorm", norm.name, (view.inputs[0], *norm.inputs[1:]), node.outputs, norm.attributes), norm, view


def _scaled(node: Node, norm: Node, rewriter: Rewriter) -> tuple[Node, ...] | None:
    if not is_linear(node):
        return None
    scale, shift = (rewriter.value(name) for name in node.inputs[1:])
    own, added = (np.repeat(values, len(scale) // len(values)) for values in map(rewriter.value, norm.inputs[1:]))
    times = rewriter.constant(f"{node.outputs[0]}.scale", own * scale)
    plus = rewriter.constant(f"{node.outputs[0]}.shift", added * scale + shift)
    return Node("GroupNorm", norm.name, (norm.inputs[0], times, plus), node.outputs, norm.attributes), norm
