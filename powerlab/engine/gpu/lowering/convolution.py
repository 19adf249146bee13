"""Convolutions: an implicit matrix product over blocks of channels, or each channel by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.activations import Finish, finish_of
from powerlab.engine.gpu.builder import Builder, Image
from powerlab.engine.gpu.lowering.dense import FEW_ROWS, Dense, emit_dense
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

Floats = NDArray[np.float32]

_LANES = 32
_FEW_PIXELS = 256
"""Up to so many a lane computes two pixels of four blocks, else four of two."""

_LEAST_LANES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How a convolution moves over its image."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0)
    dilations: tuple[int, ...] = (1, 1)

    @property
    def is_point(self) -> bool:
        """Tell whether each pixel of the result is of one pixel, that at the same place."""
        return self.kernel == self.strides == (1, 1) and self.pads == (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """What is computed.

    Attributes:
        x: the image.
        made: the result.
        window: how it moves.
        weights: shape (outputs, inputs of a group, rows, columns).
        bias: one number an output.
        groups: of channels.
        finish: how the kernel ends.
    """

    x: Image
    made: Image
    window: Window
    weights: Value
    bias: Floats
    groups: int = 1
    finish: Finish


Places = tuple[Storage, Storage, Storage | None]
"""Result, image, and what is added to the result or None, all in blocks."""


def lower_conv(builder: Builder, node: Node) -> None:
    """Lower a FusedConv."""
    x, made, groups = builder.image(node.inputs[0]), builder.image(node.outputs[0]), int(number(node, "group"))
    weights = builder.graph.kept_constants[node.inputs[1]]
    bias = builder.graph.constants[node.inputs[2]] if node.inputs[2] else np.zeros(made.channels, np.float32)
    window = Window(
        kernel=weights.shape[2:],
        strides=integers(node, "strides"),
        pads=integers(node, "pads")[:2],
        dilations=integers(node, "dilations"),
    )
    conv = Convolution(x=x, made=made, window=window, weights=weights, bias=bias, groups=groups, finish=finish_of(node))
    source = builder.blocks(node.inputs[0])
    residual = builder.blocks(node.input(3)) if node.input(3) else None
    out = builder.new_blocks(node.outputs[0])
    point = window.is_point and x.pixels == 1 and groups == 1 and residual is None
    if groups == x.channels == made.channels > 1:
        _emit_depthwise(builder, node, (out, source, residual), conv)
    elif point and x.images <= FEW_ROWS:
        flat = derived(weights, weights.shape[:2], partial(np.reshape, shape=weights.shape[:2]))
        emit_dense(builder, node, (out, source), Dense(x.images, x.channels, made.channels, flat, bias))
    else:
        emit_conv(builder, node, (out, source, residual), conv)


def emit_conv(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    """Append an implicit matrix product; where groups fill no whole blocks, all inputs count, with weights of 0."""
    x, made, window, groups, weights = conv.x, conv.made, conv.window, conv.groups, conv.weights
    if groups > 1 and (x.channels // groups % 4 or made.channels // groups % 4):
        whole = (made.channels, x.channels, *window.kernel)
        weights, groups = derived(weights, whole, partial(_ungrouped, groups=groups)), 1
    in_blocks, out_blocks = -(-(x.channels // groups) // 4), -(-(made.channels // groups) // 4)
    pixels = made.images * made.pixels
    lanes, together, tile = _tiles(pixels, out_blocks)
    tiles, taps = -(-out_blocks // tile), window.kernel[0] * window.kernel[1]
    packed = (groups * tiles * taps * in_blocks * 4 * tile * 4,)
    filled = np.zeros((groups, tiles * tile * 4), np.float32)
    filled[:, : made.channels // groups] = conv.bias.reshape(groups, -1)
    (function, numbers), (out, source, residual) = conv.finish, places
    pixel_tiles = -(-pixels // (lanes * together))
    across = min(pixel_tiles, 65535)
    builder.emit(
        "conv",
        node,
        (
            *(out, source, builder.constant(derived(weights, packed, partial(pack, groups=groups, tile=tile)))),
            *(builder.constant(filled, floats=True), residual or source),
        ),
        constants=(lanes, function, tile, together, int(residual is not None), int(builder.broadcasts)),
        push=(*numbers, *_geometry(x, made, window), groups, in_blocks, out_blocks),
        groups=(across, groups * tiles, -(-pixel_tiles // across)),
    )


def _tiles(pixels: int, out_blocks: int) -> tuple[int, int, int]:
    """Return the lanes of a work group, and the pixels and blocks of each; few where there is not much to share."""
    together = next(each for each, least in ((4, _FEW_PIXELS), (2, 16), (1, 0)) if pixels >= least)
    lanes = _LANES
    while lanes > _LEAST_LANES and lanes * together > pixels * 5 // 4:
        lanes //= 2
    return lanes, together, min(2 if together == 4 else 4, out_blocks)


def _emit_depthwise(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    made, (out, source, residual) = conv.made, places
    filled = np.zeros(4 * made.blocks, np.float32)
    filled[: made.channels] = conv.bias
    packed = derived(conv.weights, (made.blocks * math.prod(conv.window.kernel) * 4,), _each_channel)
    function, numbers = conv.finish
    tiles = -(-made.images * made.pixels // _LANES)
    across = min(tiles, 65535)
    builder.emit(
        "depthwise",
        node,
        (out, source, builder.constant(packed), builder.constant(filled, floats=True), residual or source),
        constants=(_LANES, function, int(residual is not None)),
        push=(*numbers, *_geometry(conv.x, made, conv.window), made.blocks),
        groups=(across, made.blocks, -(-tiles // across)),
    )


def _geometry(x: Image, made: Image, window: Window) -> tuple[int, ...]:
    sizes = (made.images, x.height, x.width, made.height, made.width)
    return (*sizes, *window.kernel, *window.strides, *window.pads, *window.dilations)


def pack(weights: Floats, groups: int, tile: int) -> Floats:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][tap][in block][4 inputs][block][4 outputs]."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    taps = weights.shape[2] * weights.shape[3]
    in_blocks, tiles = -(-inputs // 4), -(-outputs // (4 * tile))
    filled = np.zeros((groups, tiles * tile * 4, in_blocks * 4, taps), np.float32)
    filled[:, :outputs, :inputs] = weights.reshape(groups, outputs, inputs, taps)
    axes = filled.reshape(groups, tiles, tile, 4, in_blocks, 4, taps)
    packed: Floats = np.ascontiguousarray(axes.transpose(0, 1, 6, 4, 5, 2, 3)).reshape(-1)
    return packed


def _each_channel(weights: Floats) -> Floats:
    channels, taps = weights.shape[0], weights.shape[2] * weights.shape[3]
    filled = np.zeros((-(-channels // 4) * 4, taps), np.float32)
    filled[:channels] = weights.reshape(channels, taps)
    packed: Floats = np.ascontiguousarray(filled.reshape(-1, 4, taps).transpose(0, 2, 1)).reshape(-1)
    return packed


def _ungrouped(weights: Floats, groups: int) -> Floats:
    """Return weights of groups as those of all channels, 0 where they are of another group."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((weights.shape[0], inputs * groups, *weights.shape[2:]), np.float32)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole
