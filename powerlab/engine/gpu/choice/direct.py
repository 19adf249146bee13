"""Tiles for units of matrices that take weights straight from where they lie: ``shaders/convolution/matrix.glsl``."""

from __future__ import annotations

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.matrices import Share, by_estimate, matrix_tiles
from powerlab.engine.gpu.choice.method import MATRICES_DIRECT, Method
from powerlab.engine.gpu.target import Target

_TILES: tuple[Share, ...] = (
    *((1, 4, 4, 2, 2), (1, 2, 4, 2, 2), (1, 4, 4, 1, 2), (1, 4, 2, 2, 2), (1, 2, 2, 2, 2), (1, 8, 4, 2, 2)),
    *((2, 4, 4, 2, 2), (2, 2, 4, 2, 2), (2, 2, 2, 2, 2), (1, 2, 2, 1, 2), (1, 1, 1, 1, 2)),
    *((1, 4, 4, 2, 4), (1, 2, 4, 2, 4), (1, 4, 4, 1, 4), (1, 2, 2, 2, 4)),
)
"""Most have one subgroup across, for those beside it would load the same weights."""

_MOST = 24
_HALF_BYTES = 2


def direct_methods(shape: ConvShape, target: Target) -> list[Method]:
    """Return ways to compute a convolution of 16-bit numbers by matrices whose weights skip shared memory.

    Their order is an estimate that was fitted to weights in shared memory. Nothing of them was timed on a GPU, so no
    rule takes one.
    """
    outputs = shape.outputs // shape.groups
    tiles = matrix_tiles(target.matrices, shape.pixels, outputs, target, _HALF_BYTES, shares=_TILES, direct=True)
    return by_estimate(shape, target, MATRICES_DIRECT, tiles, _HALF_BYTES)[:_MOST]
