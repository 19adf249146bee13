"""Kernels and tiles for convolutions of bytes: what is chosen where nothing was timed, and what is worth a try."""

from __future__ import annotations

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.matrices import matrix_methods
from powerlab.engine.gpu.choice.method import BYTES_CACHED, BYTES_SHARED, Method, Numbers, blocks_of
from powerlab.engine.gpu.target import Target

_BLOCKS = 2
"""Of 4 output channels, of a lane: ``shaders/quantized/quant_conv.glsl`` knows no other number."""

_CACHED = ((32, 4), (32, 2), (16, 4), (16, 2), (64, 1), (32, 8))
"""Lanes, pixels; the rule's first."""
_SHARED = ((8, 4, 2, 8, 4), (8, 4, 2, 4, 4), (8, 4, 2, 8, 8), (16, 4, 2, 8, 4), (8, 8, 2, 8, 4), (8, 2, 4, 8, 4))
"""Lanes, pixels, blocks, lanes down, depth."""
_WORD_BYTES, _CORNER_BYTES = 4, 16


def rule_of_bytes(shape: ConvShape, target: Target) -> Method:
    """Return what is chosen where nothing was timed.

    Through the caches on a processor that stands in for a GPU. A GPU takes its units for products of matrices where it
    has them, else shared memory.
    """
    blocks = blocks_of(shape)
    if target.broadcasts:
        return _cached(*_CACHED[0])
    by_matrices = next(iter(matrix_methods(shape, target, Numbers.INT8)), None)
    return by_matrices or _shared(*_SHARED[0 if blocks >= _SHARED[0][3] * _BLOCKS else 1])


def candidates_of_bytes(shape: ConvShape, target: Target) -> list[Method]:
    """Return what is worth a try, first that of the rule."""
    blocks = blocks_of(shape)
    shared = [_shared(*numbers) for numbers in _SHARED]
    found = [
        rule_of_bytes(shape, target),
        *matrix_methods(shape, target, Numbers.INT8),
        *(_cached(*numbers) for numbers in _CACHED),
        *(one for one in shared if blocks >= one.tile_blocks // 2 and _fits(one, target)),
    ]
    return list(dict.fromkeys(found))


def _cached(lanes: int, pixels: int) -> Method:
    return Method(kernel=BYTES_CACHED, lanes=lanes, pixels=pixels, blocks=_BLOCKS)


def _shared(lanes: int, pixels: int, blocks: int, down: int, depth: int) -> Method:
    return Method(kernel=BYTES_SHARED, lanes=lanes, pixels=pixels, blocks=blocks, down=down, depth=depth)


def _fits(method: Method, target: Target) -> bool:
    """Tell whether a device has the lanes and the shared memory of tiles: ``shaders/quantized/quant_tiled.glsl``."""
    pixels = method.lanes * method.pixels
    needed = 2 * _WORD_BYTES * method.depth * (pixels + 4 * method.tile_blocks) + _CORNER_BYTES * pixels
    return method.lanes * method.down <= target.group_size and needed <= target.shared_bytes
