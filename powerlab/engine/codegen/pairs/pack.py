"""Weights in bfloat16, two channels a word, in the order that native/engine/kernels/pairs/conv_pairs.hpp reads them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.codegen.pack import aligned_floats, unit_bounds
from powerlab.engine.program.layout import PAIR_BLOCK, divide_up, pair_words
from powerlab.engine.program.program import Floats


def bfloat16_bits(values: Floats) -> NDArray[np.uint16]:
    """Return the nearest bfloat16 of each number, the even one where two are as near."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def packed_pairs_floats(shape: tuple[int, ...], groups: int, width: int) -> int:
    """Return how many words, as floats, :func:`pack_pairs` makes of weights of a shape."""
    outputs, inputs, *kernel = shape
    vectors = groups * divide_up(outputs // groups, width)
    return vectors * width * pair_words(inputs) * math.prod(kernel)


def pack_pairs(weights: Floats, groups: int, width: int, tile_blocks: int) -> Floats:
    """Pack a convolution for ``conv_direct_bf16``: [unit][input block][kh][kw][word][vector][width], words as floats.

    Args:
        weights: shape (O, I / groups, kh, kw).
        groups: groups of the convolution.
        width: outputs of a vector.
        tile_blocks: vectors of a unit at most.
    """
    outputs, inputs, *kernel = weights.shape
    per_group, blocks = outputs // groups, divide_up(inputs, PAIR_BLOCK)
    vectors = divide_up(per_group, width)
    packed = aligned_floats(packed_pairs_floats(weights.shape, groups, width))
    place, at = packed.view(np.uint16), 0
    for group in range(groups):
        own = bfloat16_bits(weights[group * per_group : (group + 1) * per_group])
        for begin, end in itertools.pairwise(unit_bounds(vectors, tile_blocks)):
            rows = own[begin * width : end * width]
            filled = np.zeros(((end - begin) * width, blocks * PAIR_BLOCK, *kernel), np.uint16)
            filled[: len(rows), :inputs] = rows
            unit = filled.reshape(end - begin, width, blocks, PAIR_BLOCK // 2, 2, *kernel)
            ordered = unit.transpose(2, 5, 6, 3, 0, 1, 4)  # block kh kw word vector v channel
            place[at : at + unit.size].reshape(ordered.shape)[...] = ordered
            at += unit.size
    return packed
