"""Col2Im and DeformConv: windows of an image put together again, or taken from where a network says.

Source: https://onnx.ai/onnx/operators/onnx__Col2Im.html and onnx__DeformConv.html; J. Dai et al., "Deformable
Convolutional Networks" (2017).
"""

from __future__ import annotations

import math

from msgspec import Struct

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.convolution import conv_windows
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec
from powerlab.engine.ops.windows import Windows, steps


class Blocks(Struct, frozen=True):
    """Blocks that overlap in an image, one number an axis.

    Attributes:
        image: size of the image.
        block: size of a block.
        grid: how many blocks there are.
        pads: what is cut off, before all axes and then behind them.
    """

    image: tuple[int, ...]
    block: tuple[int, ...]
    grid: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]


def blocks_of(view: NodeView) -> Blocks:
    """Return the blocks of a Col2Im node."""
    shape, image, block = view.floats(0, 3), view.int_values(1), view.int_values(2)
    axes = len(image)
    if len(block) != axes or min((*image, *block), default=0) < 1 or shape[1] % math.prod(block):
        view.fail(f"puts blocks of {block} with {shape[1]} numbers together to an image of {image}, which do not fit")
    strides = steps(view, "strides", view.integers("strides", (1,) * axes), axes, 1)
    dilations = steps(view, "dilations", view.integers("dilations", (1,) * axes), axes, 1)
    pads = steps(view, "pads", view.integers("pads", (0,) * (2 * axes)), 2 * axes, 0)
    grid = tuple(
        (image[axis] + pads[axis] + pads[axes + axis] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(axes)
    )
    if min(grid, default=0) < 1 or math.prod(grid) != shape[2]:
        view.fail(f"has {shape[2]} blocks where the image of {image} takes {grid}")
    return Blocks(image, block, grid, strides, dilations, pads)


def _col2im(view: NodeView) -> Spec:
    blocks, shape = blocks_of(view), view.shape(0)
    return (shape[0], shape[1] // math.prod(blocks.block), *blocks.image), FLOAT32


def deformed_windows(view: NodeView) -> Windows:
    """Return the windows of a DeformConv node before they are moved."""
    shape, weight = view.floats(0, 4), view.floats(1, 4)
    # Its bias stands where a Conv has none, and its offsets where a Conv has its bias.
    plain = NodeView(view.node, view.infos[:2], view.values[:2])
    windows = conv_windows(plain)
    groups, taps = view.integer("offset_group", 1), weight[2] * weight[3]
    if groups < 1 or shape[1] % groups:
        view.fail(f"has {shape[1]} channels and offset_group {groups}, which do not fit")
    if view.floats(2) != (shape[0], 2 * groups * taps, *windows.size):
        view.fail(f"has offsets of the shape {view.shape(2)} for windows of {windows.size}")
    if view.has(3) and view.floats(3) != (weight[0],):
        view.fail(f"has a bias of shape {view.shape(3)} for {weight[0]} output channels")
    if view.has(4) and view.floats(4) != (shape[0], groups * taps, *windows.size):
        view.fail(f"has a mask of the shape {view.shape(4)} for windows of {windows.size}")
    return windows


def _deform_conv(view: NodeView) -> Spec:
    return (view.shape(0)[0], view.shape(1)[0], *deformed_windows(view).size), FLOAT32


COL2IM = Operator(_col2im)
DEFORM_CONV = Operator(_deform_conv)
