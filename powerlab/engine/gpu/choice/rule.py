"""What is chosen where nothing was timed."""

from __future__ import annotations

import math

from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.bytes import rule_of_bytes
from powerlab.engine.gpu.choice.matrices import matrix_methods
from powerlab.engine.gpu.choice.method import MATRICES, SHARED, Chooser, Method, Numbers, blocks_of
from powerlab.engine.gpu.choice.shared import shared_methods
from powerlab.engine.gpu.target import Target

WINOGRAD_TILES = {Numbers.FP32: (2, 4), Numbers.FP16: (2,), Numbers.INT8: ()}
"""F(4, 3) loses too many of 16 bits."""

_FEW_PIXELS = 256
"""Up to so many a lane computes two pixels of four blocks, else four of two."""

_LANES, _LEAST_LANES = 32, 8
_WINOGRAD_CHANNELS, _WINOGRAD_PIXELS = 32, 1 << 14
"""Of a convolution that the rule computes by Winograd, at least; pixels on a GPU, which few do not fill."""
_WINOGRAD_SIDES = ((4, 24), (2, 12))
"""Tiles of Winograd, and the sides of an image from which on the rule takes them: found by timing on lavapipe."""


def by_rule(target: Target) -> Chooser:
    """Return what chooses where nothing was timed.

    A processor that stands in for a GPU computes best through its caches. A GPU takes its units for products of
    matrices where it has them and numbers are stored in 16 bits, without Winograd, whose products are cheap there and
    whose transforms are not; else shared memory.
    """

    def choose(shape: ConvShape, numbers: Numbers) -> Method:
        if numbers is Numbers.INT8:
            return rule_of_bytes(shape, target)
        product = rule_product(shape, target, numbers)
        tiles = 0 if product.kernel == MATRICES else _winograd(shape, target, numbers)
        return replace(product, winograd=tiles, parts=1) if tiles else product

    return choose


def rule_product(shape: ConvShape, target: Target, numbers: Numbers) -> Method:
    """Return the rule's tiles of the matrix product of floats."""
    if target.broadcasts:
        return _cached(shape.pixels, blocks_of(shape))
    by_matrices = next(iter(matrix_methods(shape, target, numbers)), None)
    return by_matrices or shared_methods(shape, target, SHARED)[0]


def suits_winograd(shape: ConvShape) -> bool:
    """Tell whether there is a Winograd convolution of a shape, and channels enough for it to be worth a thought."""
    square = shape.kernel == (3, 3) and shape.strides == shape.dilations == (1, 1) and shape.groups == 1
    return square and min(shape.inputs, shape.outputs) >= 8 and min(shape.size) >= 4


def _winograd(shape: ConvShape, target: Target, numbers: Numbers) -> int:
    """Return the rule's tiles of Winograd, large ones for large images, or 0."""
    if not suits_winograd(shape) or min(shape.inputs, shape.outputs) < _WINOGRAD_CHANNELS:
        return 0
    if shape.pixels < _WINOGRAD_PIXELS and not target.broadcasts:
        return 0
    tile = next(
        (each for each, least in _WINOGRAD_SIDES if min(shape.size) >= least and each in WINOGRAD_TILES[numbers]), 0
    )
    if tile == 0:
        return 0
    tiles = shape.images * math.prod(-(-side // tile) for side in shape.size)
    channels = max(shape.inputs, shape.outputs) + 3
    largest = 4 * (tile + 2) ** 2 * channels * max(tiles, min(shape.inputs, shape.outputs) + 3)
    return tile if largest <= target.largest_bytes else 0


def _cached(pixels: int, blocks: int) -> Method:
    """Return tiles for the caches: few lanes where there is not much to share."""
    together = next(each for each, least in ((4, _FEW_PIXELS), (2, 16), (1, 0)) if pixels >= least)
    lanes = _LANES
    while lanes > _LEAST_LANES and lanes * together > pixels * 5 // 4:
        lanes //= 2
    return Method(lanes=lanes, pixels=together, blocks=min(2 if together == 4 else 4, blocks))
