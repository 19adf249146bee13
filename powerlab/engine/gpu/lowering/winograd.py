"""Winograd convolutions: F(2, 3) and F(4, 3) of stride 1 (A. Lavin and S. Gray, 2016).

Tiles of the image are transformed, each position of a tile is a matrix product of its own, and the products are
transformed back. To the kernels of products, positions are groups of channels and tiles are pixels.
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
from powerlab.engine.gpu.lowering.convolved import Convolution, Places, Window
from powerlab.engine.gpu.lowering.implicit import emit_product
from powerlab.engine.gpu.lowering.weights import Floats, KnownWeights
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node

_TAPS = 3


def emit_winograd(builder: Builder, node: Node, places: Places, conv: Convolution, method: Method) -> None:
    """Append the three steps of a convolution of 3 x 3, stride 1 and one group, whose weights are known."""
    x, made, tile, weights = conv.x, conv.made, method.winograd, cast("KnownWeights", conv.weights)
    positions, (down, across) = (tile + _TAPS - 1) ** 2, (-(-side // tile) for side in (made.height, made.width))
    tiles = made.images * down * across
    transformed = Image(1, positions * 4 * x.blocks, 1, tiles)
    products = Image(1, positions * 4 * made.blocks, 1, tiles)
    before, after = builder.room(4 * transformed.vectors), builder.room(4 * products.vectors)
    out, source, residual = places
    geometry = (made.images, x.height, x.width, x.blocks, down, across, *conv.window.pads)
    builder.emit_flat("winograd_in", node, (before, source), x.blocks * tiles, constants=(tile,), push=geometry)
    shape = (positions * 4 * made.blocks, 4 * x.blocks, 1, 1)
    grouped = replace(
        conv,
        x=transformed,
        made=products,
        window=Window(kernel=(1, 1)),
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
        "winograd_out",
        node,
        (out, after, shifts, residual or after),
        made.blocks * tiles,
        constants=(function, tile, int(residual is not None)),
        push=(*numbers, made.images, made.height, made.width, made.blocks, down, across),
    )


def transform(weights: Floats, tile: int) -> Floats:
    """Return weights (outputs, inputs, 3, 3) as those of each position: (position * outputs, inputs, 1, 1).

    Outputs and inputs are filled up to whole blocks of 4.
    """
    g = winograd_g(tile, _TAPS)
    outputs, inputs = weights.shape[:2]
    of_position = np.einsum("pr,oirs,qs->pqoi", g, weights.astype(np.float64), g, optimize=True)
    filled = np.zeros((len(g) ** 2, -(-outputs // 4) * 4, -(-inputs // 4) * 4), np.float32)
    filled[:, :outputs, :inputs] = of_position.reshape(len(g) ** 2, outputs, inputs)
    return filled.reshape(-1, filled.shape[2], 1, 1)
