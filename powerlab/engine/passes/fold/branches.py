"""Branches that are summed: two convolutions of one tensor, or a scale of it beside one, become one convolution.

All are linear, so their weights add up where the windows lie over each other: a 1 x 1 kernel is the middle of a 3 x 3
one, and a scale is a 1 x 1 kernel with a diagonal (X. Ding et al., "RepVGG", CVPR 2021, section 3.3). Networks that are
trained with such branches are often exported with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.constants import Value, combined
from powerlab.engine.ir.graph import Array, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole

Pair = tuple[int, int]


class Branch(Struct, frozen=True):
    """A branch as a convolution.

    Attributes:
        node: what makes it.
        weight: shape (O, I / groups, kh, kw), or one number a channel, of a scale.
        bias: what is added to each channel; None: nothing.
        pads: rows above and columns left of the image.
        strides: down and across.
        groups: of channels; 0: a scale, which has those of whatever it joins.
    """

    node: Node
    weight: Value
    bias: Array | None
    pads: Pair = (0, 0)
    strides: Pair = (1, 1)
    groups: int = 0

    @property
    def kernel(self) -> Pair:
        """Return the rows and columns of its window."""
        return cast("Pair", tuple(self.weight.shape[2:])) if self.groups else (1, 1)


class Merged(NamedTuple):
    """Two branches as one convolution: the larger one's, with other weights and another bias."""

    wide: Branch
    narrow: Branch
    weight: str
    bias: str


def merge_branches(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, ...] | None:
    """Return the convolution that an Add of two branches is, and both of them; None where they are no such branches."""
    if node.op_type != "Add":
        return None
    found = merged(node, [_branch(sole(name), rewriter) for name in node.inputs], rewriter)
    if found is None:
        return None
    wide, narrow = found.wide.node, found.narrow.node
    inputs = (wide.inputs[0], found.weight, found.bias, "")
    return Node("FusedConv", wide.name, inputs, node.outputs, wide.attributes), wide, narrow


def merged(node: Node, branches: Sequence[Branch | None], rewriter: Rewriter) -> Merged | None:
    """Return an Add of two branches as one convolution; None where they are no such branches."""
    one, other = branches
    if one is None or other is None or one.node.inputs[0] != other.node.inputs[0] or one.strides != other.strides:
        return None
    wide, narrow = (one, other) if (one.kernel, one.groups) >= (other.kernel, other.groups) else (other, one)
    if not wide.groups:
        return None
    place = tuple(outer - inner for outer, inner in zip(wide.pads, narrow.pads, strict=True))
    inside = all(0 <= at <= most - least for at, most, least in zip(place, wide.kernel, narrow.kernel, strict=True))
    if not inside or narrow.groups not in (0, wide.groups):
        return None
    shape = wide.weight.shape
    if not narrow.groups and shape[0] != shape[1] * wide.groups:
        return None
    put = partial(_with_added, place=place, groups=wide.groups)
    weight = rewriter.constant(f"{node.outputs[0]}.weight", combined((wide.weight, narrow.weight), shape, put))
    biases = (np.zeros(shape[0], np.float32) if branch.bias is None else branch.bias for branch in (wide, narrow))
    return Merged(wide, narrow, weight, rewriter.constant(f"{node.outputs[0]}.bias", np.add(*biases)))


def _branch(node: Node | None, rewriter: Rewriter) -> Branch | None:
    """Return a node as a branch: a plain convolution, or a scale."""
    if node is None or node.op_type not in ("FusedConv", "ScaleShift") or not is_linear(node) or node.input(3):
        return None
    weight, bias = rewriter.kept(node.inputs[1]), rewriter.value(node.inputs[2]) if node.inputs[2] else None
    if node.op_type == "ScaleShift":
        return Branch(node, weight, bias) if len(rewriter.shape(node.inputs[0])) == 4 else None
    attributes: Any = node.attributes
    if attributes["dilations"] != (1, 1):
        return None
    return Branch(node, weight, bias, attributes["pads"][:2], attributes["strides"], attributes["group"])


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
