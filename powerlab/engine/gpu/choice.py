"""How a convolution, or a matrix product that is one, is computed: the kernel and its tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import Target

CACHED, SHARED, SHARED_HALF = "conv", "tiled", "tiled_half"
"""Kernels: lanes read through the caches; tiles lie in shared memory; there, and products are of 16-bit numbers."""

VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Plain numbers and names: it can be kept as JSON.

    Attributes:
        kernel: :data:`CACHED`, :data:`SHARED` or :data:`SHARED_HALF`.
        lanes: of a work group, along pixels.
        pixels: of a lane.
        blocks: of 4 output channels, of a lane.
        down: lanes of a work group along output channels, in shared memory.
        depth: input blocks that lie in shared memory at once.
        winograd: rows and columns of output tiles; 0: no Winograd.
    """

    kernel: str = CACHED
    lanes: int
    pixels: int
    blocks: int
    down: int = 1
    depth: int = 1
    winograd: int = 0

    @property
    def tile_blocks(self) -> int:
        """Return the output blocks of a work group."""
        return self.down * self.blocks


Chooser = Callable[[ConvShape], Method]

_FEW_PIXELS = 256
"""Up to so many a lane computes two pixels of four blocks, else four of two."""

_LANES, _LEAST_LANES = 32, 8
_SHARED_PIXELS, _SHARED_BLOCKS = 64, 4
"""Of a product that is worth shared memory, at least."""

_WINOGRAD_CHANNELS = 32
_WINOGRAD_SIDES = ((4, 24), (2, 12))
"""Tiles of Winograd, and the sides of an image from which on the rule takes them: found by timing on lavapipe."""

_WINOGRAD_TILES = {False: (2, 4), True: (2,)}
"""By whether numbers are stored in 16 bits: F(4, 3) loses too many of them."""


def by_rule(target: Target, *, half: bool) -> Chooser:
    """Return what chooses where nothing was timed, for numbers stored in 16 bits (``half``) or in 32."""

    def choose(shape: ConvShape) -> Method:
        return replace(_product(shape, target), winograd=_winograd(shape, target, half=half))

    return choose


def candidates(shape: ConvShape, target: Target, *, half: bool) -> list[Method]:
    """Return what is worth a try, first that of the rule."""
    blocks = _blocks(shape)
    found = [_product(shape, target)]
    for lanes, pixels, each in ((32, 4, 2), (32, 2, 4), (16, 4, 2), (16, 2, 2), (64, 1, 4), (32, 8, 1)):
        found.append(Method(lanes=lanes, pixels=pixels, blocks=min(each, blocks)))
    kernels = (SHARED, SHARED_HALF) if half and target.half_arithmetic else (SHARED,)
    for kernel in kernels:
        for lanes, pixels, each, down, depth in ((8, 4, 2, 4, 2), (8, 4, 2, 8, 2), (16, 4, 2, 8, 2), (8, 2, 2, 4, 4)):
            method = Method(kernel=kernel, lanes=lanes, pixels=pixels, blocks=each, down=down, depth=depth)
            if blocks >= each * down // 2 and fits(method, target):
                found.append(method)
    plain = list(dict.fromkeys(found))
    tiles = _WINOGRAD_TILES[half] if suits_winograd(shape) else ()
    by_winograd = [replace(method, winograd=tile) for tile in tiles for method in plain[:5]]
    return list(dict.fromkeys([by_rule(target, half=half)(shape), *plain, *by_winograd]))


def suits_winograd(shape: ConvShape) -> bool:
    """Tell whether there is a Winograd convolution of a shape, and channels enough for it to be worth a thought."""
    square = shape.kernel == (3, 3) and shape.strides == shape.dilations == (1, 1) and shape.groups == 1
    return square and min(shape.inputs, shape.outputs) >= 8 and min(shape.size) >= 4


def fits(method: Method, target: Target) -> bool:
    """Tell whether a device has the lanes and the shared memory that a method takes."""
    vectors = method.depth * (method.lanes * method.pixels + 4 * method.tile_blocks) + method.lanes * method.pixels
    return method.lanes * method.down <= target.group_size and vectors * VECTOR_BYTES <= target.shared_bytes


def _product(shape: ConvShape, target: Target) -> Method:
    """Return the rule's tiles of the matrix product."""
    pixels, blocks = _pixels(shape), _blocks(shape)
    if target.broadcasts or pixels < _SHARED_PIXELS or blocks < _SHARED_BLOCKS:
        return _cached(pixels, blocks)
    return Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=8 if blocks >= 16 else 4, depth=2)


def _winograd(shape: ConvShape, target: Target, *, half: bool) -> int:
    """Return the rule's tiles of Winograd, large ones for large images, or 0."""
    if not suits_winograd(shape) or min(shape.inputs, shape.outputs) < _WINOGRAD_CHANNELS:
        return 0
    tile = next(
        (each for each, least in _WINOGRAD_SIDES if min(shape.size) >= least and each in _WINOGRAD_TILES[half]), 0
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


def _pixels(shape: ConvShape) -> int:
    return shape.images * shape.size[0] * shape.size[1]


def _blocks(shape: ConvShape) -> int:
    """Return the output blocks of a group."""
    return -(-(shape.outputs // shape.groups) // 4)
