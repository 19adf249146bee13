"""Group normalisations as PyTorch exports them, around views, become one node of the image itself.

They are written as an instance normalisation of groups that count as channels, then a scale and a shift a channel (Y.
Wu, K. He, https://arxiv.org/abs/1803.08494). A GroupNorm does all that, and leaves the image in its layout.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.graph import IMAGE_AXES, Array, Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.ops.normalisation import of_channels
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_PRODUCT = "mul_strided_f32"
_ARITHMETIC = (_PRODUCT, "add_strided_f32")


def fuse_group_norms(graph: Graph) -> Graph:
    """Return the graph with no view around a GroupNorm of images, and no ScaleShift that it alone feeds."""
    if "GroupNorm" not in graph.operators:
        return graph
    return fuse_into_producers(graph, _fused)


def _fused(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    if node.op_type not in ("Reshape", "ScaleShift"):
        return None
    return _of_rows(node, sole, rewriter) or _of_groups(node, sole, rewriter)


def _of_rows(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Fuse the norm of an image of one row, scaled and shifted as a tensor of three axes, which may be a sequence."""
    steps: list[Node] = []
    before = sole(node.inputs[0]) if node.op_type == "Reshape" else None
    while before is not None and _is_of_channels(before, rewriter):
        steps.insert(0, before)
        before = sole(before.inputs[0])
    if not steps or before is None or before.op_type != "Reshape":
        return None
    fused = _of_groups(replace(before, outputs=node.outputs), sole, rewriter)
    if fused is None or rewriter.shape(before.outputs[0])[:2] != rewriter.shape(node.outputs[0])[:2]:
        return None
    norm, *absorbed = fused
    if not is_linear(norm):
        return None
    channels = rewriter.shape(node.outputs[0])[1]
    scale, shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    for step in steps:
        values = rewriter.value(step.inputs[1]).reshape(-1)
        if step.attributes["kernel"] == _PRODUCT:
            scale, shift = scale * values, shift * values
        else:
            shift = shift + values
    return _changed(norm, scale, shift, node.outputs[0], rewriter), *absorbed, before, *steps


def _is_of_channels(node: Node, rewriter: Rewriter) -> bool:
    """Tell whether a node multiplies or adds a number a channel to a tensor of three axes."""
    family, shape = node.attributes.get("kernel"), rewriter.shape(node.outputs[0])
    if family not in _ARITHMETIC or len(shape) != IMAGE_AXES - 1 or not rewriter.is_constant(node.inputs[1]):
        return False
    values = rewriter.shape(node.inputs[1])
    return values in ((shape[1], 1), (1, shape[1], 1)) and rewriter.shape(node.inputs[0]) == shape


def _of_groups(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    norm = sole(node.inputs[0])
    if norm is None or norm.op_type != "GroupNorm" or not all(map(rewriter.is_constant, norm.inputs[1:])):
        return None
    return _of_image(node, norm, sole, rewriter) if node.op_type == "Reshape" else _scaled(node, norm, rewriter)


def _of_image(node: Node, norm: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    view, shape = sole(norm.inputs[0]), rewriter.shape(node.outputs[0])
    if view is None or view.op_type != "Reshape" or rewriter.shape(view.inputs[0]) != shape:
        return None
    seen, groups = rewriter.shape(norm.inputs[0]), norm.attributes["groups"]
    if len(shape) != IMAGE_AXES or seen[:2] != (shape[0], groups):
        return None
    return Node("GroupNorm", norm.name, (view.inputs[0], *norm.inputs[1:]), node.outputs, norm.attributes), norm, view


def _scaled(node: Node, norm: Node, rewriter: Rewriter) -> tuple[Node, ...] | None:
    if not is_linear(node) or not is_linear(norm):
        return None
    scale, shift = (rewriter.value(name) for name in node.inputs[1:])
    return _changed(norm, scale, shift, node.outputs[0], rewriter), norm


def _changed(norm: Node, scale: Array, shift: Array, output: str, rewriter: Rewriter) -> Node:
    """Return the norm with what follows it, a factor and a summand a channel."""
    own, added = (of_channels(rewriter.value(name), len(scale)) for name in norm.inputs[1:])
    times = rewriter.constant(f"{output}.scale", own * scale)
    plus = rewriter.constant(f"{output}.shift", added * scale + shift)
    return Node("GroupNorm", norm.name, (norm.inputs[0], times, plus), (output,), norm.attributes)
