"""Weights of bytes in the order the kernels read them, in each form of native/engine/kernels/bytes/words.hpp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.codegen.pack import aligned_floats
from powerlab.engine.ir.constants import LARGE_ELEMENTS, Recipe, Value, derived, value_of
from powerlab.engine.program.layout import BYTE_BLOCK, WORD_BYTES, divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.target.tiers import native_engine

Bytes = NDArray[np.int8]

NARROW_SUM = 128
"""Of weights of one sign, at most: 255 times as much fits 16 bits with a sign."""


def in_whole_blocks(weights: Value, form: str) -> Value:
    """Fill input channels up to whole blocks with zeros, where a form wants that.

    Where words are multiplied one by one, a kernel of 1 x 1 passes all blocks in one loop if each is whole: of more
    than two, that saves more than the zeros take.

    Args:
        weights: shape (O, I / groups, kh, kw), of tensors in blocks.
        form: how weights lie.
    """
    inputs, *kernel = weights.shape[1:]
    is_long = math.prod(kernel) == 1 and inputs > 2 * BYTE_BLOCK
    if form != "word_blocks" and not (is_long and form in ("pairs", "words")):
        return weights
    whole = divide_up(inputs, BYTE_BLOCK) * BYTE_BLOCK
    return derived(weights, (weights.shape[0], whole, *kernel), fill_blocks)


def fill_blocks(weights: Bytes) -> Bytes:
    """Fill the input channels of weights (O, I, kh, kw) up to whole blocks with zeros."""
    missing = -weights.shape[1] % BYTE_BLOCK
    return np.pad(weights, ((0, 0), (0, missing), (0, 0), (0, 0))) if missing else weights


def merge_byte_groups(weights: Bytes, groups: int, merged: int) -> Bytes:
    """Join each ``merged`` neighbouring groups into one with zeros between: see :func:`pack.merge_groups`."""
    outputs, inputs, *kernel = weights.shape
    per_group = outputs // groups
    joined = np.zeros((outputs, merged * inputs, *kernel), np.int8)
    for group in range(groups):
        rows = slice(group * per_group, (group + 1) * per_group)
        at = group % merged * inputs
        joined[rows, at : at + inputs] = weights[rows]
    return joined


def fold_byte_row(weights: Bytes) -> Bytes:
    """Fold kernel columns into channels of four: (O, I, kh, kw) becomes (O, kw * 4, kh, 1)."""
    outputs, inputs, kernel_h, kernel_w = weights.shape
    words = np.zeros((outputs, kernel_w, WORD_BYTES, kernel_h), np.int8)
    words[:, :, :inputs] = weights.transpose(0, 3, 1, 2)
    return words.reshape(outputs, kernel_w * WORD_BYTES, kernel_h, 1)


def products_in_16_bits(weights: Bytes) -> int:
    """Return how many products fit 16 bits, whatever the bytes of x are: 4, 2 or, of weights that are not narrow, 1.

    Args:
        weights: shape (O, I, kh, kw), as they are packed.
    """
    flat, fits = weights.reshape(*weights.shape[:2], -1), native_engine().sums_stay_below
    return next((count for count in (4, 2) if fits(weights=flat, words=count // 2, most=NARROW_SUM)), 1)


def largest_sums(weights: NDArray[Any], count: int) -> NDArray[Any]:
    """Return for each output the largest sum of weights of one sign that are multiplied into the same 16 bits.

    Two of them belong to neighbouring inputs, four to those and the ones in the same places of the next word.

    Args:
        weights: shape (O, I, ...).
        count: 2 or 4.
    """
    outputs, inputs, *kernel = weights.shape
    words = count // 2
    filled = np.zeros((outputs, divide_up(inputs, words * WORD_BYTES) * words * WORD_BYTES, *kernel), np.float32)
    filled[:, :inputs] = weights
    summed = filled.reshape(outputs, -1, words, 2, 2, *kernel)
    sides = [_added(np.maximum(side, 0)) for side in (summed, -summed)]
    return np.asarray(np.maximum(*sides).reshape(outputs, -1).max(axis=1, initial=0))


def _added(places: NDArray[Any]) -> NDArray[Any]:
    """Return the sums over axes 2 and 4, which are short: numpy adds whole arrays faster than along such axes."""
    by_word = places[:, :, :, :, 0] + places[:, :, :, :, 1]
    total: NDArray[Any] = by_word[:, :, 0]
    for word in range(1, places.shape[2]):
        total += by_word[:, :, word]
    return total


def pack_bytes(weights: Bytes, groups: int, unit: tuple[int, int], words: int, form: str) -> Floats:
    """Pack a convolution for ``conv_direct_u8``: [unit][block][kh][kw][word][vector][half][width], bytes as floats.

    Args:
        weights: shape (O, I / groups, kh, kw), with any strides.
        groups: groups of the convolution.
        unit: how many vectors a unit of outputs has at most, and how many outputs a vector.
        words: words of an input block.
        form: how the four weights of a word lie.
    """
    most, width = unit
    packed: Floats = native_engine().pack_bytes(
        weights=weights.reshape(*weights.shape[:2], -1),
        groups=groups,
        width=width,
        tile_vectors=most,
        words=words,
        form=form,
    )
    return packed


def packed_bytes(weights: Value, groups: int, unit: tuple[int, int], words: int, form: str) -> Value:
    """Return what :func:`pack_bytes` makes; of many weights the recipe, so that several threads make it."""

    def pack() -> Floats:
        return pack_bytes(value_of(weights), groups, unit, words, form)

    if weights.size < LARGE_ELEMENTS:
        return pack()
    outputs, inputs, *kernel = weights.shape
    floats = native_engine().packed_byte_floats(
        shape=(outputs, inputs, math.prod(kernel)),
        groups=groups,
        width=unit[1],
        tile_vectors=unit[0],
        words=words,
        form=form,
    )
    return Recipe(shape=(floats,), dtype=np.dtype(np.float32), make=pack)


def pack_depthwise_bytes(weights: Bytes, width: int) -> Floats:
    """Pack a depthwise convolution, shape (C, 1, kh, kw), as [vector][kh][kw][width]."""
    channels, _, kernel_h, kernel_w = weights.shape
    vectors = divide_up(channels, width)
    filled = np.zeros((vectors * width, kernel_h, kernel_w), np.int8)
    filled[:channels] = weights[:, 0]
    packed = filled.reshape(vectors, width, kernel_h, kernel_w).transpose(0, 2, 3, 1)
    return _as_floats(np.ascontiguousarray(packed).reshape(-1).view(np.uint8))


def pack_depthwise_neighbours(weights: Bytes, width: int, neighbours: int) -> Floats:
    """Pack a depthwise convolution, shape (C, 1, kh, kw), as [vector][kh][group of taps][width][tap], 32 bits a lane.

    Args:
        weights: shape (C, 1, kh, kw).
        width: channels of a vector.
        neighbours: taps of a group, which lie beside each other in a row: 4 of 8 bits, or 2 of 16.
    """
    channels, _, kernel_h, kernel_w = weights.shape
    vectors, groups = divide_up(channels, width), divide_up(kernel_w, neighbours)
    number = np.int8 if neighbours == WORD_BYTES else np.int16
    filled = np.zeros((vectors * width, kernel_h, groups * neighbours), number)
    filled[:channels, :, :kernel_w] = weights[:, 0]
    packed = filled.reshape(vectors, width, kernel_h, groups, neighbours).transpose(0, 2, 3, 1, 4)
    return _as_floats(np.ascontiguousarray(packed).reshape(-1).view(np.uint8))


def pack_requantization(begin: NDArray[Any], multipliers: Floats, groups: int, width: int) -> Floats:
    """Return for each vector of outputs the integers that sums begin with, as the bits of floats, then multipliers."""
    outputs = len(begin) // groups
    vectors = divide_up(outputs, width)
    packed = np.zeros((groups, vectors, 2, width), np.float32)
    for which, values in enumerate((begin.astype(np.int32).view(np.float32), multipliers)):
        filled = np.zeros((groups, vectors * width), np.float32)
        filled[:, :outputs] = values.reshape(groups, outputs)
        packed[:, :, which] = filled.reshape(groups, vectors, width)
    return packed.reshape(-1)


def _as_floats(values: NDArray[np.uint8]) -> Floats:
    """Return bytes where vectors may be loaded from, as floats, filled up to whole ones."""
    floats = aligned_floats(divide_up(values.size, WORD_BYTES))
    place = floats.view(np.uint8)
    place[: values.size] = values
    place[values.size :] = 0
    return floats
