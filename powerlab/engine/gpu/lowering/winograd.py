"""Winograd convolutions: F(2, 3) and F(4, 3) of stride 1 (A. Lavin and S. Gray, 2016).

Tiles of the image are transformed, each position of a tile is a matrix product of its own, and the products are
transformed back. To the kernels of products, positions are groups of channels and tiles are pixels. Over volumes planes
are transformed, each by itself, and products sum over those that a window sees: as convolutions of columns, for which
planes are rows and the tiles of one are columns.
"""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.pack import winograd_g
from powerlab.engine.gpu.activations import PLAIN
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.method import Method
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolved import AcrossPlanes, Convolution, Places, Window
from powerlab.engine.gpu.lowering.implicit import emit_product
from powerlab.engine.gpu.lowering.weights import Floats, KnownWeights
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node

_TAPS = 3


def emit_winograd(builder: Builder, node: Node, places: Places, conv: Convolution, method: Method) -> None:
    """Append the three steps of a convolution of 3 x 3, stride 1 and one group, whose weights are known.

    Over volumes that goes for rows and columns; across planes windows may move in any way.
    """
    x, made, tile, weights = conv.x, conv.made, method.winograd, cast("KnownWeights", conv.weights)
    positions, (down, across) = (tile + _TAPS - 1) ** 2, (-(-side // tile) for side in (made.height, made.width))
    transformed, products = (_tiles_of(one, positions, down * across, conv.window) for one in (x, made))
    before, after = builder.room(4 * transformed.vectors), builder.room(4 * products.vectors)
    out, source, residual = places
    builder.emit_flat(
        conv.window.kernel_of("winograd_in"),
        node,
        (before, source),
        transformed.vectors // positions,
        constants=(tile,),
        push=(made.images, x.height, x.width, x.blocks, down, across, *conv.window.pads, *_planes(x, conv.window)),
    )
    shape = (positions * 4 * made.blocks, 4 * x.blocks, conv.window.planes, 1)
    grouped = replace(
        conv,
        x=transformed,
        made=products,
        window=_window(conv.window.across),
        weights=KnownWeights(
            derived(weights.values, shape, partial(transform, tile=tile)), np.zeros(products.channels, np.float32)
        ),
        groups=positions,
        finish=PLAIN,
    )
    emit_product(builder, node, (after, before, None), grouped, replace(method, winograd=0))
    function, numbers = conv.finish
    shifts = weights.biases(builder, node, 1, made.blocks)
    builder.emit_flat(
        conv.window.kernel_of("winograd_out"),
        node,
        (out, after, shifts, residual or after),
        products.vectors // positions,
        constants=(function, tile, int(residual is not None)),
        push=(*numbers, made.images, made.height, made.width, made.blocks, down, across, *_planes(made, conv.window)),
    )


def _tiles_of(image: Image, positions: int, tiles: int, window: Window) -> Image:
    """Return the products of images of so many tiles, or of volumes with so many a plane, as images."""
    channels = positions * 4 * image.blocks
    if window.across is None:
        return Image(1, channels, 1, image.images * tiles)
    return Image(image.images, channels, image.planes, tiles)


def _planes(image: Image, window: Window) -> tuple[int, ...]:
    """Return the push constant that only kernels over volumes have."""
    return () if window.across is None else (image.planes,)


def _window(across: AcrossPlanes | None) -> Window:
    """Return the window of the products: a pixel, or a column of as many as it sees planes."""
    if across is None:
        return Window(kernel=(1, 1))
    return Window(
        kernel=(across.kernel, 1),
        strides=(across.stride, 1),
        pads=(across.pad, 0),
        dilations=(across.dilation, 1),
    )


def transform(weights: Floats, tile: int) -> Floats:
    """Return weights (outputs, inputs, 3 rows a plane, 3) as those of each position.

    They have the shape (position * outputs, inputs, planes, 1); outputs and inputs are filled up to whole blocks of 4.
    """
    g = winograd_g(tile, _TAPS)
    outputs, inputs = weights.shape[:2]
    of_planes = weights.astype(np.float64).reshape(outputs, inputs, -1, _TAPS, _TAPS)
    of_position = np.einsum("pr,oizrs,qs->pqoiz", g, of_planes, g, optimize=True)
    planes = of_planes.shape[2]
    filled = np.zeros((len(g) ** 2, -(-outputs // 4) * 4, -(-inputs // 4) * 4, planes), np.float32)
    filled[:, :outputs, :inputs] = of_position.reshape(len(g) ** 2, outputs, inputs, planes)
    return filled.reshape(-1, filled.shape[2], planes, 1)
