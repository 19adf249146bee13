"""Packed weights hold every weight once, where the kernel reads it: unpacking gives them back, in any tier's sizes."""

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native import numpy_reference
from engine_native.graphs import NO_CLAMP
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.pack import (
    WINOGRAD_G,
    fill_channels,
    fold_row,
    fold_strides,
    merge_groups,
    mergeable_groups,
    pack_depthwise,
    pack_direct,
    pack_grouped,
    pack_winograd,
    packed_direct_floats,
    packed_weights,
    packed_winograd_floats,
    unit_bounds,
    winograd_g,
)
from powerlab.engine.codegen.pairs.pack import NUMBERS, bfloat16_bits, float16_bits, pack_pairs
from powerlab.engine.codegen.quantized.pack import in_whole_blocks
from powerlab.engine.codegen.weights import PackedWeights
from powerlab.engine.ir.constants import Recipe
from powerlab.engine.ir.scratch import room_for
from powerlab.engine.passes.fold.batch_norms import scaled_by
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.target.tiers import BF16, FP16, Tier, native_engine

# Vector width and tile blocks of sse4 and neon, avx2, avx512, and of no tier.
TILES = [(4, 2), (8, 2), (16, 4), (4, 3)]


def numbered(*shape: int) -> np.ndarray:
    """Weights that all differ, and none of which is the zero that fills up blocks."""
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


def unpack_direct(packed, shape, groups, tile, lanes):
    """Walk packed weights in the order of kernels/convolution/conv_direct.hpp and put each where it came from."""
    (outputs, inputs, kernel_h, kernel_w), (width, tile_blocks) = shape, tile
    per_group = outputs // groups
    blocks = divide_up(per_group, width)
    units = divide_up(blocks, tile_blocks)
    weights, at = np.full(shape, np.nan, np.float32), 0
    for group in range(groups):
        for unit in range(units):
            first, last = unit * blocks // units * width, (unit + 1) * blocks // units * width
            for block in range(0, inputs, lanes):
                for ky, kx in np.ndindex(kernel_h, kernel_w):
                    for channel in range(block, min(block + lanes, inputs)):
                        run = packed[at : at + last - first]
                        at += last - first
                        real = min(last, per_group) - first
                        weights[group * per_group + first : group * per_group + first + real, channel, ky, kx] = run[
                            :real
                        ]
                        assert not run[real:].any()
    assert at == packed.size
    return weights


@settings(deadline=None, max_examples=80)
@given(
    tile=st.sampled_from(TILES),
    groups=st.sampled_from([1, 1, 2, 3]),
    per_group=st.tuples(st.integers(1, 75), st.integers(1, 40)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    lanes=st.sampled_from([None, 3, 128]),
)
def test_direct_weights_come_back(tile, groups, per_group, kernel, lanes):
    width, tile_blocks = tile
    outputs, inputs = per_group
    if groups > 1:  # the lowering merges groups until their channels fill blocks
        outputs, inputs = divide_up(outputs, width) * width, divide_up(inputs, width) * width
    weights = numbered(groups * outputs, inputs, *kernel)
    lanes = lanes or width
    packed = pack_direct(weights, groups, width, tile_blocks, lanes)
    assert packed.dtype == np.float32
    np.testing.assert_array_equal(unpack_direct(packed, weights.shape, groups, tile, lanes), weights)


@given(st.sampled_from(TILES), st.integers(1, 75), st.integers(1, 40), st.tuples(st.integers(1, 3), st.integers(1, 4)))
def test_direct_weights_may_have_any_strides(tile, outputs, inputs, kernel):
    width, tile_blocks = tile
    weights = numbered(*kernel, inputs, 2 * outputs).transpose(3, 2, 0, 1)[::2]
    packed = pack_direct(weights, 1, width, tile_blocks, width)
    np.testing.assert_array_equal(packed, pack_direct(weights.copy(), 1, width, tile_blocks, width))


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="weights do not fit"):
        pack_direct(numbered(4, 4, 1, 1), 1, 4, 2, 4, packed=np.zeros(4, np.float32))


@given(st.sampled_from(TILES), st.integers(1, 50), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_depthwise_weights_come_back(tile, channels, kernel):
    width = tile[0]
    weights = numbered(channels, 1, *kernel)
    packed = pack_depthwise(weights, width).reshape(-1, *kernel, width)
    back = packed.transpose(0, 3, 1, 2).reshape(-1, *kernel)
    np.testing.assert_array_equal(back[:channels], weights[:, 0])
    assert back.shape[0] == divide_up(channels, width) * width
    assert not back[channels:].any()


@given(st.sampled_from(TILES), st.sampled_from([4, 8]), st.integers(1, 9))
def test_weights_of_small_groups_come_back(tile, channels, groups):
    width, outputs = tile[0], channels * groups
    weights = numbered(outputs, channels, 3, 3)
    back = pack_grouped(weights, width).reshape(-1, 3, channels, 3, width).transpose(0, 4, 2, 1, 3)
    back = back.reshape(-1, channels, 3, 3)
    np.testing.assert_array_equal(back[:outputs], weights)
    assert back.shape[0] == divide_up(outputs, width) * width
    assert not back[outputs:].any()


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(TILES), st.sampled_from([2, 4, 6]), st.integers(1, 75), st.integers(1, 20))
def test_winograd_weights_are_those_of_the_paper_at_every_position(sizes, tile, outputs, inputs):
    width, tile_blocks = sizes
    weights = np.random.default_rng(outputs).standard_normal((outputs, inputs, 3, 3), dtype=np.float32)
    g = WINOGRAD_G[tile]
    expected = np.einsum("ai,ocij,bj->oabc", g, weights.astype(np.float64), g).astype(np.float32)
    packed = pack_winograd(weights, tile, width, tile_blocks)
    blocks, size = divide_up(outputs, width), tile + 2
    at = 0
    bounds = unit_bounds(blocks, tile_blocks)
    for begin, end in itertools.pairwise(bounds):
        span = (end - begin) * width
        unit = packed[at : at + size * size * inputs * span].reshape(size, size, inputs, span)
        at += unit.size
        wanted = expected[begin * width : end * width]
        np.testing.assert_allclose(unit[..., : len(wanted)], wanted.transpose(1, 2, 3, 0), rtol=1e-6, atol=1e-7)
        assert not unit[..., len(wanted) :].any()
    assert at == packed.size


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([BF16, FP16]), st.sampled_from([(4, 2), (4, 4), (16, 4)]), st.integers(1, 3), st.data())
def test_weights_of_16_bits_lie_where_kernels_read_them(precision, tile, groups, data):
    """Walk them in the order of kernels/pairs/conv_pairs.hpp and half_tile.hpp."""
    (width, blocks), numbers = tile, NUMBERS[precision]
    outputs, inputs = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 35))
    kernel = data.draw(st.sampled_from([(1, 1), (3, 2)]))
    channels = data.draw(st.sampled_from([4, 16, 32]))
    weights = numbered(groups * outputs, inputs, *kernel) % 251
    tier = Tier("any", width, blocks, 4, precision=precision)
    words = iter(pack_pairs(weights, groups, tier, channels).view(np.uint16))
    to_bits = {BF16: bfloat16_bits, FP16: float16_bits}[precision]
    width, together, run = width * numbers.floats, blocks // numbers.floats, numbers.channels
    found = np.zeros_like(weights, np.uint16)
    for group in range(groups):
        for begin, end in itertools.pairwise(unit_bounds(divide_up(outputs, width), together)):
            places = itertools.product(range(divide_up(inputs, channels)), *map(range, kernel), range(channels // run))
            for block, y, x, word in places:
                for output, channel in itertools.product(range(begin * width, end * width), range(run)):
                    bits, at = next(words), channels * block + word * run + channel
                    if output < outputs and at < inputs:
                        found[group * outputs + output, at, y, x] = bits
                    else:
                        assert bits == 0
    assert next(words, None) is None
    np.testing.assert_array_equal(found, to_bits(weights))


def test_weights_beyond_float16_are_its_largest():
    assert float16_bits(np.float32([1e6, -1e9, 65504])).view(np.float16).tolist() == [65504, -65504, 65504]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(TILES), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.booleans())
def test_grouped_winograd_weights_are_those_of_each_group(sizes, groups, in_blocks, out_blocks, large):
    width, tile_blocks = sizes
    taps = 5 if large else 3
    shape = (groups * out_blocks * width, in_blocks * width, taps, taps)
    weights = np.random.default_rng(out_blocks).standard_normal(shape, dtype=np.float32)
    parts = [pack_winograd(part, 4, width, tile_blocks) for part in np.split(weights, groups)]
    np.testing.assert_array_equal(pack_winograd(weights, 4, width, tile_blocks, groups), np.concatenate(parts))


@pytest.mark.parametrize(("tile", "taps"), [(2, 3), (4, 3), (6, 3), (4, 5)])
def test_the_rows_of_g_are_powers_of_its_points(tile, taps):
    """Toom and Cook: a row evaluates the kernel's polynomial at its point, up to a factor; the last is infinity."""
    points = [0, 1, -1, 2, -2, 0.5, -0.5][: tile + taps - 2]
    for row, point in zip(winograd_g(tile, taps), points, strict=False):
        np.testing.assert_allclose(row, row[0] * np.power(float(point), np.arange(taps)), rtol=1e-15)
    np.testing.assert_array_equal(winograd_g(tile, taps)[-1], np.eye(taps)[-1])


@given(st.integers(1, 4), st.integers(1, 4), st.tuples(st.integers(1, 12), st.integers(1, 12)), st.sampled_from([2, 4]))
def test_folded_strides_hold_each_weight_once_and_zeros(outputs, inputs, kernel, stride):
    weights = numbered(outputs, inputs, *kernel)
    folded = fold_strides(weights, stride)
    rows, columns = (divide_up(length, stride) for length in kernel)
    assert folded.shape == (outputs, inputs * stride**2, rows, columns)
    for ky in range(rows * stride):
        for kx in range(columns * stride):
            at = np.arange(inputs) * stride**2 + ky % stride * stride + kx % stride
            found = folded[:, at, ky // stride, kx // stride]
            if ky < kernel[0] and kx < kernel[1]:
                np.testing.assert_array_equal(found, weights[:, :, ky, kx])
            else:
                assert not found.any()


# B^T and A^T of Lavin and Gray (2016), as the kernel's additions spell them out.
PAPER = {
    2: (
        [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]],
    ),
    4: (
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    ),
}


@pytest.mark.parametrize("tile", [2, 4])
def test_the_transforms_are_a_convolution_exactly(tile):
    """A^T [(G g) * (B^T d)] is the correlation of g and d, in fractions, for every pair of unit vectors."""
    to_input, to_output = PAPER[tile]
    g = [[Fraction(value).limit_denominator(24) for value in row] for row in WINOGRAD_G[tile]]
    for row, floats in zip(g, WINOGRAD_G[tile], strict=True):
        assert [float(value) for value in row] == list(floats)  # nothing was rounded away
    for tap in range(3):
        for at in range(tile + 2):
            products = [g[position][tap] * to_input[position][at] for position in range(tile + 2)]
            out = [sum(a * p for a, p in zip(row, products, strict=True)) for row in to_output]
            assert out == [1 if pixel + tap == at else 0 for pixel in range(tile)]


@settings(deadline=None, max_examples=40)
@given(
    groups=st.sampled_from([2, 3, 4, 6, 8]),
    inputs=st.integers(1, 4),
    outputs=st.integers(1, 5),
    width=st.sampled_from([4, 8, 16]),
)
def test_merged_groups_compute_the_same(groups, inputs, outputs, width):
    rng = np.random.default_rng(groups * inputs + outputs)
    weights = rng.standard_normal((groups * outputs, inputs, 2, 2), dtype=np.float32)
    x = rng.standard_normal((1, groups * inputs, 4, 3), dtype=np.float32)
    merged = mergeable_groups(inputs, outputs, groups, width)
    joined = merge_groups(weights, groups, merged)
    options = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "clamp": NO_CLAMP}
    expected = numpy_reference.conv(x, weights, **options, group=groups)
    found = numpy_reference.conv(x, joined, **options, group=groups // merged)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert np.count_nonzero(joined) == np.count_nonzero(weights)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(2, 24), st.sampled_from([4, 8, 16]))
def test_as_few_groups_are_merged_as_fill_blocks(inputs, outputs, groups, width):
    merged = mergeable_groups(inputs, outputs, groups, width)
    smaller = [one for one in range(1, merged) if groups % one == 0]
    assert all(one * inputs % width or one * outputs % width for one in smaller)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.integers(1, 6))
def test_a_folded_row_is_the_same_convolution_over_interleaved_pixels(outputs, inputs, kernel_h, kernel_w):
    rng = np.random.default_rng(7)
    weights = rng.standard_normal((outputs, inputs, kernel_h, kernel_w), dtype=np.float32)
    x = rng.standard_normal((inputs, kernel_h, kernel_w), dtype=np.float32)
    rows = x.transpose(1, 2, 0).reshape(kernel_h, kernel_w * inputs)  # [h][w][c], one run of lanes a row
    folded = fold_row(weights)[:, :, :, 0]
    found = np.einsum("olh,hl->o", folded.astype(np.float64), rows.astype(np.float64))
    expected = np.einsum("oihw,ihw->o", weights.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 40), st.sampled_from([4, 8, 16]))
def test_values_a_channel_keep_their_places(channels, width):
    values = numbered(channels)
    blocks = divide_up(channels, width)
    filled = fill_channels(values, channels, blocks, width)
    assert filled.shape == (blocks * width,)
    np.testing.assert_array_equal(filled[:channels], values)
    assert not filled[channels:].any()
    np.testing.assert_array_equal(fill_channels(values.reshape(1, -1, 1, 1), channels, blocks, width), filled)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_weights_of_all_steps_are_made(threads: int) -> None:
    packed = PackedWeights(threads, 2**20)
    for step in range(20):
        packed.add(step, recipe(lambda step=step: np.full(100 - step, step, np.float32), 100 - step))
    made = packed.finish()
    assert {step: set(weights.tolist()) for step, weights in made.items()} == {step: {step} for step in range(20)}


@pytest.mark.parametrize("threads", [1, 2])
def test_weights_that_cannot_be_read_are_an_error(threads: int) -> None:
    def fail() -> Floats:
        raise PowerlabError("the file is gone.")

    packed = PackedWeights(threads, 2**20)
    packed.add(0, recipe(lambda: np.zeros(8, np.float32), 8))
    packed.add(1, recipe(fail, 8))
    with pytest.raises(PowerlabError, match="the file is gone"):
        packed.finish()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("total_bytes", [0, 2**20, 2**30], ids=["tiny", "few", "many"])
def test_weights_are_packed_from_memory_used_again(threads: int, total_bytes: int) -> None:
    packed, expected = PackedWeights(threads, total_bytes), {}
    for step in range(40):
        weights = np.random.default_rng(step).standard_normal((16, 8 + step % 5, 3, 3), np.float32)
        if step % 2:
            pack = partial(pack_winograd, tile=4, width=8, tile_blocks=2)
            floats = packed_winograd_floats(weights.shape, 4, 8, 1)
        else:
            pack = partial(pack_direct, groups=1, width=8, tile_blocks=2, lanes=8)
            floats = packed_direct_floats(weights.shape, 1, 8)
        packed.add(step, packed_weights(weights if step % 3 == 0 else read_as(weights), floats, pack))
        expected[step] = pack(weights)
    made = packed.finish()
    assert made.keys() == expected.keys()
    for step, weights in made.items():
        np.testing.assert_array_equal(weights, expected[step])


def read_as(values: Floats) -> Recipe:
    """Return the recipe of values that are read into memory for values that are given up again."""

    def read() -> Floats:
        room = room_for(values.dtype, values.size)
        room[:] = values.ravel()
        return room.reshape(values.shape)

    return Recipe(shape=values.shape, dtype=values.dtype, make=read)


def test_what_a_queue_cannot_pack_is_told_where_it_is_waited_for() -> None:
    queue = native_engine().WorkQueue(1)
    pack_direct(numbered(4, 4, 1, 1), 1, 4, 2, 4, packed=np.zeros(4, np.float32), queue=queue)
    with pytest.raises(ValueError, match="do not fit"):
        queue.finish()


def test_a_queue_that_is_given_up_waits_for_what_it_has_begun() -> None:
    for _ in range(20):
        queue = native_engine().WorkQueue(1)
        for _ in range(10):
            pack_direct(np.ones((64, 64, 3, 3), np.float32), 1, 8, 2, 8, queue=queue)
        del queue


def recipe(make: Callable[[], Floats], size: int) -> Recipe:
    return Recipe(shape=(size,), dtype=np.dtype(np.float32), make=make)


def test_scales_are_folded_into_own_weights_alone() -> None:
    given, factors = np.ones((2, 3), np.float32), np.array([[2], [3]], np.float32)
    scaled = scaled_by(factors, given, own=False)
    assert np.all(given == 1)
    assert np.array_equal(scaled_by(factors, given, own=True), scaled)


def test_bytes_for_amx_fill_whole_blocks():
    weights = (numbered(5, 20, 3, 2) % 100).astype(np.int8)
    filled = in_whole_blocks(weights, "word_blocks")
    assert filled.shape == (5, 32, 3, 2)
    assert np.array_equal(filled[:, :20], weights)
    assert not filled[:, 20:].any()
    assert in_whole_blocks(weights, "words") is weights
