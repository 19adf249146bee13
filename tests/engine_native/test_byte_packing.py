"""Weights of bytes as kernels read them, and sums of their rows, against plain numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.engine.codegen.pack import unit_bounds
from powerlab.engine.codegen.quantized.pack import (
    NARROW_SUM,
    fill_blocks,
    largest_sums,
    pack_bytes,
    packed_bytes,
    products_in_16_bits,
)
from powerlab.engine.ir.constants import Recipe
from powerlab.engine.target.tiers import native_engine

FORMS = ["words", "word_blocks", "pairs", "signed_pairs", "signed_eights"]
WORD = 4


def in_form(block, form):
    """``block`` has the axes [...][word][vector][output][channel]; in a form they have more, or another order."""
    if form == "pairs":
        return np.stack((block[..., 0::2], block[..., 1::2]), axis=-3).astype(np.int16)
    if form == "signed_pairs":
        return np.stack((block[..., :2], block[..., 2:]), axis=-3)
    if form == "signed_eights":
        *before, words, vectors, width, _ = block.shape
        filled = np.concatenate((block, np.zeros((*before, words % 2, vectors, width, WORD), np.int8)), axis=-4)
        twos = filled.reshape(*before, -1, 2, vectors, width, WORD)
        return np.concatenate((twos[..., 0, :, :, :], twos[..., 1, :, :, :]), axis=-1)
    return block


def expected(weights, groups, unit, words, form):
    most, width = unit
    outputs, inputs, *kernel = weights.shape
    per_group, total = outputs // groups, -(-inputs // WORD)
    vectors, pieces = -(-per_group // width), []
    for group in range(groups):
        filled = np.zeros((vectors * width, total * WORD, *kernel), np.int8)
        filled[:per_group, :inputs] = weights[group * per_group : (group + 1) * per_group]
        for begin, end in itertools.pairwise(unit_bounds(vectors, most)):
            rows = filled[begin * width : end * width].reshape(end - begin, width, total, WORD, *kernel)
            for first in range(0, total, words):
                block = rows[:, :, first : first + words].transpose(4, 5, 2, 0, 1, 3)
                pieces.append(np.ascontiguousarray(in_form(block, form)).reshape(-1).view(np.uint8))
    return np.concatenate(pieces)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), form=st.sampled_from(FORMS), seed=st.integers(0, 2**32 - 1))
def test_packed_as_numpy_would(data, form, seed):
    groups, turned = data.draw(st.integers(1, 3)), data.draw(st.booleans())
    outputs, inputs = groups * data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    kernel = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    most, width, words = (data.draw(st.sampled_from(values)) for values in ((1, 3, 4), (4, 8, 16), (1, 4)))
    generator = np.random.default_rng(seed)
    weights = generator.integers(-127, 128, (outputs, inputs, *kernel), np.int8)
    if turned:  # as those of a matrix that is multiplied from the other side
        weights = np.ascontiguousarray(weights.transpose(1, 0, 2, 3)).transpose(1, 0, 2, 3)
    packed = pack_bytes(weights, groups, (most, width), words, form).view(np.uint8)
    wanted = expected(weights, groups, (most, width), words, form)
    np.testing.assert_array_equal(packed[: wanted.size], wanted)
    assert not packed[wanted.size :].any()
    assert packed.size - wanted.size < WORD


@pytest.mark.parametrize("form", FORMS)
def test_many_weights_are_packed_when_somebody_asks(form):
    weights = np.random.default_rng(1).integers(-127, 128, (60, 50, 3, 3), np.int8)
    sizes = (1, (4, 16), 4, form)
    recipe = packed_bytes(weights, *sizes)
    assert isinstance(recipe, Recipe)
    made = recipe.make()
    assert made.shape == recipe.shape
    np.testing.assert_array_equal(made.view(np.uint8), pack_bytes(weights, *sizes).view(np.uint8))
    few = packed_bytes(weights[:2], *sizes)
    np.testing.assert_array_equal(few.view(np.uint8), pack_bytes(weights[:2], *sizes).view(np.uint8))


def test_a_form_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no such form"):
        pack_bytes(np.ones((4, 4, 1, 1), np.int8), 1, (4, 16), 4, "octets")


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3), (7, 9001), (300, 520), (33, 255 * 32 + 5)], ids=str)
def test_sums_of_rows(shape, turned):
    """The largest numbers in every place would not fit 16 bits for long."""
    generator = np.random.default_rng(2)
    for values in (generator.integers(-128, 128, shape, np.int8), np.full(shape, -128, np.int8)):
        rows = np.asfortranarray(values) if turned else values
        sums, absolute = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        native_engine().sum_rows(rows=rows, sums=sums, absolute=absolute)
        np.testing.assert_array_equal(sums, values.sum(axis=1, dtype=np.int64))
        np.testing.assert_array_equal(absolute, np.abs(values.astype(np.int64)).sum(axis=1))


@settings(max_examples=150, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 20), st.integers(1, 2), st.integers(1, 3)),
    most=st.sampled_from([20, 40, 64, 90]),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_fit_16_bits_where_the_largest_sums_do(shape, most, seed):
    weights = np.random.default_rng(seed).integers(-most, most + 1, shape, np.int8)
    sums = {count: largest_sums(weights, count).max() for count in (4, 2)}
    assert products_in_16_bits(weights) == next((count for count, sum_ in sums.items() if sum_ <= NARROW_SUM), 1)


def test_whole_blocks_are_left_as_they_are():
    whole = np.ones((2, 32, 1, 1), np.int8)
    assert fill_blocks(whole) is whole
    assert fill_blocks(np.ones((2, 20, 1, 1), np.int8)).shape == (2, 32, 1, 1)
