"""Batch-norm folding: a ScaleShift goes into the weights and bias of the convolution, Gemm or ScaleShift before it.

Where there is none, it goes into the convolution after it.

Source: Jacob et al., https://arxiv.org/abs/1712.05877, section 3.2, for inference without quantisation.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from powerlab.engine.ir.constants import Recipe, derived, value_of
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.fold.branches import merge_branches
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

_WEIGHT_FIRST = ("FusedConv", "FusedConvTranspose", "FusedGemm", "FusedVolumeConv")


def _fold(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    if node.op_type != "ScaleShift":
        return None
    before = sole(node.inputs[0])
    if before is None or before.op_type not in (*_WEIGHT_FIRST, "ScaleShift"):
        return None
    if not is_linear(before) or before.input(3):
        return None
    scale, shift = rewriter.value(node.inputs[1]), rewriter.value(node.inputs[2])
    multiplied = rewriter.kept(before.inputs[1])
    per_output: Array = scale.reshape(-1, *(1,) * (len(multiplied.shape) - 1))
    added = rewriter.value(before.inputs[2]) if before.inputs[2] else np.zeros_like(shift)
    with np.errstate(all="ignore"):
        bias = rewriter.constant(f"{node.outputs[0]}.bias", added * scale + shift)
    scaled = derived(multiplied, multiplied.shape, partial(scaled_by, per_output, own=isinstance(multiplied, Recipe)))
    weight = rewriter.constant(f"{node.outputs[0]}.weight", scaled)
    inputs = (before.inputs[0], weight, bias, *before.inputs[3:])
    attributes = {**before.attributes, **node.attributes}
    return Node(before.op_type, before.name, inputs, node.outputs, attributes), before


def scaled_by(factors: Array, weights: Array, *, own: bool) -> Array:
    """Return weights times factors; in place where they are our own, for fresh memory takes longer than the product."""
    with np.errstate(all="ignore"):
        product: Array = np.multiply(weights, factors, out=weights if own and weights.flags.writeable else None)
    return product


def _fold_ahead(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    """Return a convolution that does what the ScaleShift before it did; padding is not shifted, so there is none."""
    before = sole(node.inputs[0]) if node.op_type == "FusedConv" else None
    if before is None or before.op_type != "ScaleShift" or not is_linear(before):
        return None
    scale, shift = rewriter.value(before.inputs[1]), rewriter.value(before.inputs[2])
    attributes: Any = node.attributes
    weights, groups = rewriter.kept(node.inputs[1]), attributes["group"]
    if np.any(shift) and any(attributes["pads"]):
        return None

    def of_weights(values: Array) -> Array:
        """Return numbers of input channels as (outputs, inputs of a group, 1, 1)."""
        each = np.repeat(values.reshape(groups, -1), weights.shape[0] // groups, axis=0)
        return each[:, :, None, None]

    scaled = derived(weights, weights.shape, partial(scaled_by, of_weights(scale), own=isinstance(weights, Recipe)))
    weight, bias = rewriter.constant(f"{node.outputs[0]}.weight", scaled), node.inputs[2]
    if np.any(shift):
        with np.errstate(all="ignore"):
            added = (value_of(weights) * of_weights(shift)).sum(axis=(1, 2, 3), dtype=np.float64).astype(np.float32)
            bias = rewriter.constant(f"{node.outputs[0]}.bias", added + (rewriter.value(bias) if bias else 0))
    inputs = (before.inputs[0], weight, bias, *node.inputs[3:])
    return Node("FusedConv", node.name, inputs, node.outputs, node.attributes), before


def _fold_or_merge(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Each makes room for the other: a scale after a sum of branches, a branch that ends in a scale."""
    return _fold(node, sole, rewriter) or _fold_ahead(node, sole, rewriter) or merge_branches(node, sole, rewriter)


def fold_scales(graph: Graph) -> Graph:
    """Return the graph with every ScaleShift folded that follows a foldable node nobody else reads.

    Sums of convolutions of the same tensor become one convolution.
    """
    return fuse_into_producers(graph, _fold_or_merge)
