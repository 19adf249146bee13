"""What is worth a try where kernels are timed."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.bytes import candidates_of_bytes
from powerlab.engine.gpu.choice.direct import direct_methods
from powerlab.engine.gpu.choice.matrices import matrix_methods
from powerlab.engine.gpu.choice.method import SHARED, SHARED_HALF, Method, Numbers, blocks_of
from powerlab.engine.gpu.choice.rule import WINOGRAD_TILES, by_rule, rule_product, suits_winograd
from powerlab.engine.gpu.choice.shared import shared_methods
from powerlab.engine.gpu.target import Target

_CACHED = ((32, 4, 2), (32, 2, 4), (16, 4, 2), (16, 2, 2), (64, 1, 4), (32, 8, 1))
"""Lanes, pixels, blocks."""

_MOST_BY_WINOGRAD = 5


def candidates(shape: ConvShape, target: Target, numbers: Numbers) -> list[Method]:
    """Return what is worth a try, first that of the rule."""
    if numbers is Numbers.INT8:
        return candidates_of_bytes(shape, target)
    blocks, in_half = blocks_of(shape), numbers is Numbers.FP16 and target.half_arithmetic
    found = [rule_product(shape, target, numbers), *matrix_methods(shape, target, numbers)]
    found += [Method(lanes=lanes, pixels=pixels, blocks=min(each, blocks)) for lanes, pixels, each in _CACHED]
    found += direct_methods(shape, target) if numbers is Numbers.FP16 else []
    for kernel in (SHARED, SHARED_HALF) if in_half else (SHARED,):
        found += shared_methods(shape, target, kernel)
    found += [replace(one, parts=1) for one in found]
    plain = list(dict.fromkeys(found))
    tiles = WINOGRAD_TILES[numbers] if suits_winograd(shape) else ()
    by_winograd = [replace(method, winograd=tile, parts=1) for tile in tiles for method in plain[:_MOST_BY_WINOGRAD]]
    return list(dict.fromkeys([by_rule(target)(shape, numbers), *plain, *by_winograd]))
