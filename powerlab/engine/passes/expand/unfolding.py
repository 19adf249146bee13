"""Col2Im becomes a ConvTranspose whose weights put each number in its place, DeformConv samples and a convolution.

Source: https://onnx.ai/onnx/operators/onnx__Col2Im.html and onnx__DeformConv.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.unfolding import blocks_of, deformed_windows
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _col2im(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    add, blocks, shape = Expansion(view, rewriter), blocks_of(view), view.shape(0)
    axes, taps = len(blocks.image), math.prod(blocks.block)
    channels = shape[1] // taps
    source = add.reshape(view.node.inputs[0], (shape[0], shape[1], *blocks.grid))
    weights = np.tile(np.eye(taps, dtype=np.float32).reshape(taps, 1, *blocks.block), (channels, *(1,) * (axes + 1)))
    covered = (
        (blocks.grid[axis] - 1) * blocks.strides[axis]
        + blocks.dilations[axis] * (blocks.block[axis] - 1)
        + 1
        - blocks.pads[axis]
        - blocks.pads[axes + axis]
        for axis in range(axes)
    )
    made = add(
        "ConvTranspose",
        source,
        add.floats(weights),
        group=channels,
        strides=blocks.strides,
        dilations=blocks.dilations,
        pads=blocks.pads,
        output_padding=tuple(size - done for size, done in zip(blocks.image, covered, strict=True)),
    )
    return add.ending(made)


def _deform_conv(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Sample the image for each tap of each window, and sum the taps as channels of a 1 × 1 convolution."""
    add, node, windows = Expansion(view, rewriter), view.node, deformed_windows(view)
    (batch, channels, height, width), weight = view.shape(0), view.shape(1)
    groups, kernel, size = view.integer("offset_group", 1), weight[2:], windows.size
    taps = kernel[0] * kernel[1]
    offsets = add.reshape(node.inputs[2], (batch * groups, taps, 2, *size))
    places = []
    for axis, length in ((1, width), (0, height)):  # x comes first in a grid
        tap = np.arange(taps) // kernel[1] if axis == 0 else np.arange(taps) % kernel[1]
        window = np.arange(size[axis]) * windows.strides[axis] - windows.pads[axis]
        begin = tap[:, None] * windows.dilations[axis] + window
        begin = begin[:, :, None] if axis == 0 else begin[:, None, :]
        moved = add("Slice", offsets, add.ints([axis]), add.ints([axis + 1]), add.ints([2]))
        moved = add.reshape(moved, (batch * groups, taps, *size))
        # From pixels to a grid in which -1 and 1 are the image's edges.
        scaled = add("Mul", moved, add.floats(2 / length))
        placed = add("Add", scaled, add.floats(np.broadcast_to((2 * begin + 1) / length - 1, (taps, *size))))
        places.append(add.reshape(placed, (batch * groups, taps * size[0], size[1], 1)))
    image = add.reshape(node.inputs[0], (batch * groups, channels // groups, height, width))
    found = add("GridSample", image, add("Concat", *places, axis=-1), mode="linear", padding_mode="zeros")
    if view.has(4):
        found = add.reshape(found, (batch, groups, channels // groups, taps, size[0] * size[1]))
        found = add("Mul", found, add.reshape(node.inputs[4], (batch, groups, 1, taps, size[0] * size[1])))
    found = add.reshape(found, (batch, channels * taps, *size))
    weights = add.reshape(node.inputs[1], (weight[0], weight[1] * taps, 1, 1))
    bias = [node.inputs[3]] if view.has(3) else []
    return add.ending(add("Conv", found, weights, *bias, group=view.integer("group", 1)))


def expand_unfolding(graph: Graph) -> Graph:
    """Return the graph without Col2Im and DeformConv."""
    return rewrite_nodes(graph, {"Col2Im": _col2im, "DeformConv": _deform_conv})
