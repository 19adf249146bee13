"""Weights in 16-bit floats, as conv_pairs.hpp and half_tile.hpp of native/engine/kernels/pairs read them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.codegen.pack import aligned_floats, unit_bounds
from powerlab.engine.program.layout import divide_up, pair_words
from powerlab.engine.program.program import Floats
from powerlab.engine.target.tiers import BF16, FP16, Tier

_LARGEST_HALF = 65504


def bfloat16_bits(values: Floats) -> NDArray[np.uint16]:
    """Return the nearest bfloat16 of each number, the even one where two are as near."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def float16_bits(values: Floats) -> NDArray[np.uint16]:
    """Return the nearest float16 of each number; of one beyond the largest, that."""
    return np.clip(values, -_LARGEST_HALF, _LARGEST_HALF).astype(np.float16).view(np.uint16)


class Numbers(Struct, frozen=True):
    """How a kernel wants the weights of an instruction.

    Attributes:
        bits: makes 16-bit floats of weights.
        floats: vectors of floats that a vector of its sums stands for.
        channels: that follow on each other for each output.
    """

    bits: Callable[[Floats], NDArray[np.uint16]]
    floats: int
    channels: int


NUMBERS = {BF16: Numbers(bfloat16_bits, 1, 2), FP16: Numbers(float16_bits, 2, 1)}


def packed_pairs_floats(shape: tuple[int, ...], groups: int, tier: Tier, block: int) -> int:
    """Return how many words, as floats, :func:`pack_pairs` makes of weights of a shape."""
    outputs, inputs, *kernel = shape
    width = tier.vector_width * NUMBERS[tier.precision].floats
    vectors = groups * divide_up(outputs // groups, width)
    return vectors * width * pair_words(inputs, block) * math.prod(kernel)


def pack_pairs(weights: Floats, groups: int, tier: Tier, block: int) -> Floats:
    """Pack a convolution: [unit][input block][kh][kw][word][vector][width][channel of a word], words as floats.

    In float16 a vector has twice as many outputs, and a word one channel.

    Args:
        weights: shape (O, I / groups, kh, kw).
        groups: groups of the convolution.
        tier: the tier with the register tile of the kernels, and the precision.
        block: channels of an input block.
    """
    numbers = NUMBERS[tier.precision]
    width, tile_blocks, word = tier.vector_width * numbers.floats, tier.tile_blocks // numbers.floats, numbers.channels
    outputs, inputs, *kernel = weights.shape
    per_group, blocks = outputs // groups, divide_up(inputs, block)
    vectors = divide_up(per_group, width)
    packed = aligned_floats(packed_pairs_floats(weights.shape, groups, tier, block))
    place, at = packed.view(np.uint16), 0
    for group in range(groups):
        own = numbers.bits(weights[group * per_group : (group + 1) * per_group])
        for begin, end in itertools.pairwise(unit_bounds(vectors, tile_blocks)):
            rows = own[begin * width : end * width]
            filled = np.zeros(((end - begin) * width, blocks * block, *kernel), np.uint16)
            filled[: len(rows), :inputs] = rows
            unit = filled.reshape(end - begin, width, blocks, block // word, word, *kernel)
            ordered = unit.transpose(2, 5, 6, 3, 0, 1, 4)  # block kh kw word vector v channel
            place[at : at + unit.size].reshape(ordered.shape)[...] = ordered
            at += unit.size
    return packed
