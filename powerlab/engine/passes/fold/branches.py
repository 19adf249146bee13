"""Branches that are summed: two convolutions of one tensor, or a scale of it beside one, become one convolution.

All are linear, so their weights add up where the windows lie over each other: a 1 x 1 kernel is the middle of a 3 x 3
one, and a scale is a 1 x 1 kernel with a diagonal (X. Ding et al., "RepVGG", CVPR 2021, section 3.3). Networks that are
trained with such branches are often exported with them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.constants import combined
from powerlab.engine.ir.graph import Array, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole

Pair = tuple[int, int]


class _Branch(Struct, frozen=True):
    """A branch as a convolution; of ``pads``, those above and left of the image."""

    node: Node
    kernel: Pair
    pads: Pair
    strides: Pair
    groups: int


def merge_branches(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Return the convolution that an Add of two branches is, and both of them; None where they are no such branches."""
    if node.op_type != "Add":
        return None
    one, other = (_branch(sole(name), rewriter) for name in node.inputs)
    if one is None or other is None or one.node.inputs[0] != other.node.inputs[0] or one.strides != other.strides:
        return None
    wide, narrow = (one, other) if one.kernel >= other.kernel else (other, one)
    if wide.node.op_type != "FusedConv":
        return None
    place = tuple(outer - inner for outer, inner in zip(wide.pads, narrow.pads, strict=True))
    inside = all(0 <= at <= most - least for at, most, least in zip(place, wide.kernel, narrow.kernel, strict=True))
    if not inside or (narrow.groups not in (0, wide.groups)):
        return None
    weight, added = (rewriter.kept(branch.node.inputs[1]) for branch in (wide, narrow))
    if not narrow.groups and weight.shape[0] != weight.shape[1] * wide.groups:
        return None
    put = partial(_with_added, place=place, groups=wide.groups)
    merged = rewriter.constant(f"{node.outputs[0]}.weight", combined((weight, added), weight.shape, put))
    bias = rewriter.constant(f"{node.outputs[0]}.bias", _bias(wide, rewriter) + _bias(narrow, rewriter))
    inputs = (wide.node.inputs[0], merged, bias, "")
    return Node("FusedConv", wide.node.name, inputs, node.outputs, wide.node.attributes), wide.node, narrow.node


def _branch(node: Node | None, rewriter: Rewriter) -> _Branch | None:
    """Return a node as a branch: a plain convolution, or a scale, which has the groups of whatever it joins: 0."""
    if node is None or node.op_type not in ("FusedConv", "ScaleShift") or not is_linear(node) or node.input(3):
        return None
    if node.op_type == "ScaleShift":
        return _Branch(node, (1, 1), (0, 0), (1, 1), 0) if len(rewriter.shape(node.inputs[0])) == 4 else None
    attributes: Any = node.attributes
    if attributes["dilations"] != (1, 1):
        return None
    kernel = cast("Pair", tuple(rewriter.kept(node.inputs[1]).shape[2:]))
    return _Branch(node, kernel, attributes["pads"][:2], attributes["strides"], attributes["group"])


def _with_added(weight: Array, added: Array, *, place: tuple[int, ...], groups: int) -> Array:
    """Return the weights (outputs, inputs of a group, h, w) with those of a smaller window, or a scale, added."""
    if added.ndim == 1:
        outputs = np.arange(weight.shape[0])
        scale, added = added, np.zeros((*weight.shape[:2], 1, 1), weight.dtype)
        added[outputs, outputs % (weight.shape[0] // groups), 0, 0] = scale
    made = weight.copy()
    top, left = place
    made[:, :, top : top + added.shape[2], left : left + added.shape[3]] += added
    return made


def _bias(branch: _Branch, rewriter: Rewriter) -> Array:
    name = branch.node.inputs[2]
    return rewriter.value(name) if name else np.zeros(rewriter.kept(branch.node.inputs[1]).shape[0], np.float32)
