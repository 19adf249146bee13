"""What is worth a try where kernels are timed."""

from __future__ import annotations

from dataclasses import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.bytes import candidates_of_bytes
from powerlab.engine.gpu.choice.matrices import matrix_methods
from powerlab.engine.gpu.choice.method import SHARED, SHARED_HALF, Method, Numbers, blocks_of
from powerlab.engine.gpu.choice.rule import WINOGRAD_TILES, by_rule, rule_product, suits_winograd
from powerlab.engine.gpu.target import Target

_VECTOR_BYTES = 16
_CACHED = ((32, 4, 2), (32, 2, 4), (16, 4, 2), (16, 2, 2), (64, 1, 4), (32, 8, 1))
"""Lanes, pixels, blocks."""
_SHARED = ((8, 4, 2, 4, 2), (8, 4, 2, 8, 2), (16, 4, 2, 8, 2), (8, 2, 2, 4, 4))
"""Lanes, pixels, blocks, lanes down, depth."""
_MOST_BY_WINOGRAD = 5


def candidates(shape: ConvShape, target: Target, numbers: Numbers) -> list[Method]:
    """Return what is worth a try, first that of the rule."""
    if numbers is Numbers.INT8:
        return candidates_of_bytes(shape, target)
    blocks, in_half = blocks_of(shape), numbers is Numbers.FP16 and target.half_arithmetic
    found = [rule_product(shape, target, numbers), *matrix_methods(shape, target, numbers)]
    found += [Method(lanes=lanes, pixels=pixels, blocks=min(each, blocks)) for lanes, pixels, each in _CACHED]
    for kernel in (SHARED, SHARED_HALF) if in_half else (SHARED,):
        for lanes, pixels, each, down, depth in _SHARED:
            method = Method(kernel=kernel, lanes=lanes, pixels=pixels, blocks=each, down=down, depth=depth)
            if blocks >= each * down // 2 and fits(method, target):
                found.append(method)
    plain = list(dict.fromkeys(found))
    tiles = WINOGRAD_TILES[numbers] if suits_winograd(shape) else ()
    by_winograd = [replace(method, winograd=tile) for tile in tiles for method in plain[:_MOST_BY_WINOGRAD]]
    return list(dict.fromkeys([by_rule(target)(shape, numbers), *plain, *by_winograd]))


def fits(method: Method, target: Target) -> bool:
    """Tell whether a device has the lanes and the shared memory that tiles in it take."""
    vectors = method.depth * (method.lanes * method.pixels + 4 * method.tile_blocks) + method.lanes * method.pixels
    return method.lanes * method.down <= target.group_size and vectors * _VECTOR_BYTES <= target.shared_bytes
