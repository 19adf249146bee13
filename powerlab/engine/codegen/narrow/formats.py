"""The formats of native/engine/kernels/narrow/formats.hpp: weights as words, from floats that are rounded already.

A model's weights are rounded before (:mod:`powerlab.engine.quantization.weights`), so integers and scales are found
again, and a kernel with plain floats computes the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.codegen.pack import aligned_floats, filled_rows, unit_bounds
from powerlab.engine.codegen.pairs.pack import bfloat16_bits, float16_bits
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats

_BYTE_LIMIT, _NIBBLE_LIMIT = 127, 7
_SCALED_FEATURES = 32
"""Weights of an output in a row that share a scale in int4w; two scales are a word."""

Words = NDArray[Any]


class Format(Struct, frozen=True):
    """How weights are kept.

    Attributes:
        name: as kernels call it.
        features: weights that share a word.
        sums: register tiles of sums that its kernel keeps at a time.
        unit: packs the weights of a unit, shape (vectors, width, features), as words.
        scale_words: words of scales that an output of so many features has.
    """

    name: str
    features: int
    sums: int
    unit: Callable[[Floats], Words]
    scale_words: Callable[[int], int]

    def row_words(self, features: int) -> int:
        """Return the words of an output, its scales among them."""
        return divide_up(features, self.features) + self.scale_words(features)

    def packed(self, weights: Value, width: int, together: int) -> Value:
        """Return weights of shape (outputs, features) as a kernel reads them: units of ``together`` vectors at most."""
        outputs, features = weights.shape
        floats = divide_up(outputs, width) * width * self.row_words(features)
        return derived(weights, (floats,), partial(self._pack, width=width, together=together, floats=floats))

    def _pack(self, weights: Floats, width: int, together: int, floats: int) -> Floats:
        packed, at = aligned_floats(floats), 0
        for begin, end in itertools.pairwise(unit_bounds(divide_up(len(weights), width), together)):
            rows = filled_rows(weights[begin * width : end * width], (end - begin) * width)
            words = np.ascontiguousarray(self.unit(rows.reshape(end - begin, width, -1))).reshape(-1).view(np.float32)
            packed[at : at + words.size] = words
            at += words.size
        return packed


def _by_word(values: Words, features: int) -> Words:
    """Return values of shape (vectors, width, features) as (words, vectors, width, features of a word)."""
    vectors, width, count = values.shape
    filled = np.zeros((vectors, width, divide_up(count, features) * features), values.dtype)
    filled[:, :, :count] = values
    return filled.reshape(vectors, width, -1, features).transpose(2, 0, 1, 3)


def _bfloat16(rows: Floats) -> Words:
    return _by_word(bfloat16_bits(rows), 2)


def _halves(rows: Floats) -> Words:
    return _by_word(float16_bits(rows), 2).transpose(0, 1, 3, 2)


def _bytes(rows: Floats) -> Words:
    scale = _scale(np.abs(rows).max(axis=2), _BYTE_LIMIT)
    whole = np.rint(rows / scale[:, :, None]).astype(np.int8)
    words = _by_word(whole, 4).transpose(0, 1, 3, 2)
    return np.concatenate((scale.reshape(-1).view(np.int8), words.reshape(-1)))


def _nibbles(rows: Floats) -> Words:
    vectors, width, count = rows.shape
    pieces = []
    for first in range(0, count, 2 * _SCALED_FEATURES):
        both = np.zeros((vectors, width), np.uint32)
        part = rows[:, :, first : first + 2 * _SCALED_FEATURES].copy()
        for half in range(divide_up(part.shape[2], _SCALED_FEATURES)):
            own = part[:, :, half * _SCALED_FEATURES : (half + 1) * _SCALED_FEATURES]
            scale = block_scale(np.abs(own).max(axis=2))
            own /= scale[:, :, None]
            both |= bfloat16_bits(scale).astype(np.uint32) << np.uint32(16 * half)
        words = _by_word(np.rint(part).astype(np.int32).view(np.uint32) & np.uint32(15), 8)
        shifts = np.arange(0, 32, 4, dtype=np.uint32)
        pieces += [both.reshape(-1), np.bitwise_or.reduce(words << shifts, axis=3).reshape(-1)]
    return np.concatenate(pieces)


def _scale(largest: Floats, limit: int) -> Floats:
    scale = np.where(largest > 0, largest / np.float32(limit), np.float32(1)).astype(np.float32)
    return np.maximum(scale, np.finfo(np.float32).tiny)


def block_scale(largest: Floats) -> Floats:
    """Return the scales in int4w of blocks with these largest weights: the next bfloat16 above a seventh of each."""
    bits = _scale(largest, _NIBBLE_LIMIT).view(np.uint32)
    return (bits + np.uint32(0xFFFF) & np.uint32(0xFFFF0000)).view(np.float32)


FORMATS: Mapping[str, Format] = {
    "bf16": Format("bf16w", 2, 1, _bfloat16, lambda _: 0),
    "fp16": Format("fp16w", 2, 1, _halves, lambda _: 0),
    "fp16w": Format("fp16w", 2, 1, _halves, lambda _: 0),
    "int8w": Format("int8w", 4, 1, _bytes, lambda _: 1),
    "int4w": Format("int4w", 8, 2, _nibbles, lambda features: divide_up(features, 2 * _SCALED_FEATURES)),
}
"""Precision -> how weights of linear layers are kept."""

RECURRENT_FORMATS: Mapping[str, Format] = {name: FORMATS[name] for name in ("bf16", "fp16", "fp16w")}
"""The same for LSTMs: one step's weights come from a cache, so to make floats of smaller ones takes longer."""
