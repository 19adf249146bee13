"""A float network as it is quantized: constants folded, batch norms and branches merged into convolutions.

Sources: Jacob et al., https://arxiv.org/abs/1712.05877, section 3.2; for branches, passes/fold/branches.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import IMAGE_AXES, Array, Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.quantized import expand_quantized
from powerlab.engine.passes.fold.branches import Branch, merged
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def prepared_for_quantization(graph: Graph) -> Graph:
    """Return a loaded graph as calibration and quantization want it; it computes the same."""
    return drop_dead(fuse_into_producers(fold_constants(expand_quantized(graph)), _fold))


def _fold(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    rules = (_fold_batch_norm, _fold_constant, _merge_branches)
    return next((found for found in (rule(node, sole, rewriter) for rule in rules) if found), None)


def _fold_batch_norm(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    conv = sole(node.inputs[0]) if _is_scale(node, rewriter) else None
    if conv is None or not _is_conv(conv, rewriter):
        return None
    scale, shift = _scale_and_shift(node, rewriter)
    return _scaled(conv, scale, shift, node.outputs[:1], rewriter), conv


def _scaled(conv: Node, scale: Array, shift: Array, outputs: tuple[str, ...], rewriter: Rewriter) -> Node:
    """Return a convolution with what follows it, a factor and a summand a channel, in its weights and bias."""
    kept, weight = rewriter.kept(conv.inputs[1]), conv.inputs[1]
    bias = rewriter.value(conv.inputs[2]) if conv.input(2) else np.zeros_like(shift)
    if np.any(scale != 1):
        factors = scale.reshape(-1, *(1,) * (len(kept.shape) - 1)).astype(np.float32)
        weight = rewriter.constant(f"{weight}.folded", derived(kept, kept.shape, lambda value: value * factors))
    added = rewriter.constant(f"{outputs[0]}.bias", (bias * scale + shift).astype(np.float32))
    return replace(conv, inputs=(conv.inputs[0], weight, added), outputs=outputs)


def _fold_constant(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Return the convolution that the constant behind it, one number or one a channel, is added to or multiplies."""
    if node.op_type not in ("Add", "Mul") or sum(map(rewriter.is_constant, node.inputs)) != 1:
        return None
    constant, made = sorted(node.inputs, key=rewriter.is_constant, reverse=True)
    conv, numbers = sole(made), rewriter.value(constant)
    if conv is None or not _is_conv(conv, rewriter):
        return None
    channels = rewriter.kept(conv.inputs[1]).shape[0]
    axes = len(rewriter.shape(made))
    shape = (1,) * (axes - numbers.ndim) + numbers.shape
    if len(shape) != axes or shape[1] not in (1, channels) or numbers.size != shape[1]:
        return None
    each = np.broadcast_to(numbers.reshape(-1), channels)
    adds = node.op_type == "Add"
    scale, shift = (np.ones_like(each), each) if adds else (each, np.zeros_like(each))
    return _scaled(conv, scale, shift, node.outputs, rewriter), conv


def _is_conv(node: Node, rewriter: Rewriter) -> bool:
    """Tell whether a node is a convolution with weights that are known."""
    return node.op_type == "Conv" and all(map(rewriter.is_constant, filter(None, node.inputs[1:])))


def _is_scale(node: Node, rewriter: Rewriter) -> bool:
    """Tell whether a node is a batch norm of numbers that are known."""
    if node.op_type != "BatchNormalization" or node.attributes.get("training_mode", 0):
        return False
    return all(map(rewriter.is_constant, node.inputs[1:5]))


def _scale_and_shift(node: Node, rewriter: Rewriter) -> tuple[Array, Array]:
    """Return what a batch norm multiplies each channel by, and then adds."""
    gamma, beta, mean, variance = (rewriter.value(name).astype(np.float64) for name in node.inputs[1:5])
    scale = gamma / np.sqrt(variance + NodeView.of(rewriter.graph, node).number("epsilon", 1e-5))
    return scale, beta - mean * scale


def _merge_branches(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Return the convolution that an Add of two branches is: one layer, not two and a sum that is rounded, too."""
    if node.op_type != "Add":
        return None
    found = merged(node, [_branch(sole(name), rewriter) for name in node.inputs], rewriter)
    if found is None:
        return None
    wide, narrow = found.wide.node, found.narrow.node
    inputs = (wide.inputs[0], found.weight, found.bias)
    return replace(wide, inputs=inputs, outputs=node.outputs), wide, narrow


def _branch(node: Node | None, rewriter: Rewriter) -> Branch | None:
    """Return a node as a branch: a convolution of images, or a batch norm by itself."""
    if node is None or len(rewriter.shape(node.outputs[0])) != IMAGE_AXES:
        return None
    if _is_scale(node, rewriter):
        scale, shift = _scale_and_shift(node, rewriter)
        return Branch(node, scale.astype(np.float32), shift.astype(np.float32))
    if not _is_conv(node, rewriter):
        return None
    attributes: Any = node.attributes
    if attributes.get("auto_pad", "NOTSET") != "NOTSET" or set(attributes.get("dilations", ())) - {1}:
        return None
    return Branch(
        node,
        rewriter.kept(node.inputs[1]),
        rewriter.value(node.inputs[2]) if node.input(2) else None,
        pads=tuple(attributes.get("pads", (0,) * 4))[:2],
        strides=tuple(attributes.get("strides", (1, 1))),
        groups=attributes.get("group", 1),
    )
