"""Drops the taps of a dilated convolution that meet nothing but padding, and the padding that they alone needed.

A kernel of 3 x 3 whose dilation is as wide as its image, as in the pyramids of DeepLab (L.-C. Chen et al.,
https://arxiv.org/abs/1706.05587, section 3.3, which notes it), is one of 1 x 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes
from powerlab.engine.program.layout import divide_up


class _Axis(NamedTuple):
    """One axis of a convolution's windows: which taps to keep, and the padding that they need before and after."""

    taps: range
    before: int
    after: int


def drop_outside_taps(graph: Graph) -> Graph:
    """Return the graph with every convolution's kernel cut to the taps that some window sees inside its image."""
    return rewrite_nodes(graph, {"FusedConv": _cut, "QuantConv": _cut})


def _cut(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node, attributes = view.node, view.node.attributes
    if node.inputs[1] not in rewriter.graph.kept_constants or view.shape(1)[2:] == (1, 1):
        return None
    pads = cast("tuple[int, int, int, int]", attributes["pads"])
    strides, dilations = (cast("tuple[int, int]", attributes[name]) for name in ("strides", "dilations"))
    images, kernel, made = view.shape(0)[2:], view.shape(1)[2:], rewriter.shape(node.outputs[0])[2:]
    rows, columns = (
        _axis(kernel[i], images[i], made[i], (strides[i], dilations[i]), (pads[i], pads[i + 2])) for i in (0, 1)
    )
    if (rows.taps, columns.taps) == (range(kernel[0]), range(kernel[1])):
        return None
    kept = rewriter.kept(node.inputs[1])
    shape = (*kept.shape[:2], len(rows.taps), len(columns.taps))
    crop = partial(_cropped, rows=rows.taps, columns=columns.taps)
    weights = rewriter.constant(f"{node.inputs[1]}.inside", derived(kept, shape, crop))
    changed = {**attributes, "pads": (rows.before, columns.before, rows.after, columns.after)}
    inputs = (node.inputs[0], weights, *node.inputs[2:])
    if node.op_type == "QuantConv":
        inputs = (*inputs[:2], _begin(node, rewriter, weights), *inputs[3:])
    return [replace(node, inputs=inputs, attributes=changed)]


def _cropped(weights: Array, rows: range, columns: range) -> Array:
    return weights[:, :, rows.start : rows.stop, columns.start : columns.stop]


def _begin(node: Node, rewriter: Rewriter, kept: str) -> str:
    """Add what sums of bytes begin with where they no longer hold the zero points that cut taps met."""
    begin = rewriter.value(node.inputs[2])
    whole, inside = (rewriter.value(name).sum(axis=(1, 2, 3), dtype=np.int64) for name in (node.inputs[1], kept))
    zero = int(cast("int", node.attributes["x_zero"]))
    return rewriter.constant(f"{node.inputs[2]}.inside", (begin + zero * (whole - inside)).astype(np.int32))


def _axis(taps: int, size: int, made: int, steps: tuple[int, int], pads: tuple[int, int]) -> _Axis:
    """Return what is left of one axis: a tap goes where none of its ``made`` positions lies inside ``size`` pixels."""
    stride, dilation = steps

    def is_inside(tap: int) -> bool:
        first = tap * dilation - pads[0]
        outside = max(0, divide_up(-first, stride))  # positions before the image
        return outside < made and first + outside * stride < size

    begin, end = 0, taps
    while begin < end - 1 and pads[0] >= (begin + 1) * dilation and not is_inside(begin):
        begin += 1
    while end > begin + 1 and pads[1] >= (taps - end + 1) * dilation and not is_inside(end - 1):
        end -= 1
    return _Axis(range(begin, end), pads[0] - begin * dilation, pads[1] - (taps - end) * dilation)
