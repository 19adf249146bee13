"""Arena, layouts, packing and the cutting of work: arithmetic, without the native core."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.algorithms.preactivated import pack_pieces
from powerlab.engine.codegen.convolutions.algorithms.winograd import tiles_together
from powerlab.engine.codegen.convolutions.choosing import by_cost
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.pack import (
    ALIGNMENT_BYTES,
    WINOGRAD_G,
    aligned_floats,
    fill_channels,
    fold_row,
    merge_groups,
    mergeable_groups,
    pack_depthwise,
    pack_direct,
    pack_winograd,
    unit_bounds,
)
from powerlab.engine.program.layout import Halo, blocked, divide_up, planar, shape4
from powerlab.engine.program.program import Program, Step, Tensor
from powerlab.engine.program.storage import Space, Storage
from powerlab.engine.runtime.arena import ALIGNMENT_FLOATS, lay_out, lifetimes
from powerlab.engine.target.caches import ASSUMED
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

AVX2 = Tier("avx2", 8, 2, 6)
AVX512 = Tier("avx512", 16, 4, 6)


def chain(sizes, reads):
    """Steps that write storage i + 1 and read storage i and, where given, an older one."""
    storages = [Storage(number, Space.ARENA, 0, size) for number, size in enumerate(sizes)]
    tensors = [Tensor(storage, planar((1, storage.floats, 1, 1))) for storage in storages]
    return [
        Step("copy", str(i), tensors[i + 1], tensors[i], tensors[reads[i] % (i + 1)]) for i in range(len(sizes) - 1)
    ]


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 30)), min_size=2, max_size=30))
def test_storages_alive_together_never_overlap(items):
    steps = chain([size for size, _ in items], [read for _, read in items])
    arena = lay_out(Program(tuple(steps), ()))
    lives = lifetimes(steps)
    spans = [(arena.offsets[life.storage.number], life.storage.floats, life) for life in lives]
    for begin, floats, life in spans:
        assert begin % ALIGNMENT_FLOATS == 0
        assert begin + floats <= arena.floats
        for other_begin, other_floats, other in spans:
            if other is not life and life.first <= other.last and other.first <= life.last:
                assert begin + floats <= other_begin or other_begin + other_floats <= begin


def test_a_chain_needs_the_memory_of_two_neighbours():
    arena = lay_out(Program(tuple(chain([1600] * 10, range(10))), ()))
    assert arena.floats == 2 * 1600


def test_memory_from_outside_is_not_placed():
    outside = Tensor(Storage(1, Space.INPUT, 0, 16), planar((1, 16, 1, 1)))
    inside = Tensor(Storage(2, Space.ARENA, 0, 16), planar((1, 16, 1, 1)))
    assert lay_out(Program((Step("copy", "a", inside, outside),), ())).offsets == {2: 0}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), (1, 1, 1, 1)),
        ((5,), (1, 5, 1, 1)),
        ((2, 5), (2, 5, 1, 1)),
        ((2, 5, 7), (2, 5, 1, 7)),
        ((2, 5, 3, 4, 7), (2, 5, 12, 7)),
    ],
)
def test_any_rank_becomes_four_dimensions(shape, expected):
    assert shape4(shape) == expected


@settings(deadline=None)
@given(
    st.tuples(*[st.integers(1, 20)] * 4),
    st.sampled_from([3, 4, 8, 16]),
    st.builds(Halo, *[st.integers(0, 3)] * 4),
)
def test_a_blocked_layout_gives_every_element_a_place_of_its_own(shape, lanes, halo):
    layout = blocked(shape, lanes, halo)
    n, c, h, w = shape
    i, block, y, x, lane = np.ix_(*(range(k) for k in (n, layout.blocks, h, w, lanes)))
    places = (layout.start + i * layout.image + block * layout.plane + y * layout.row + x * layout.pixel + lane).ravel()
    assert layout.blocks == divide_up(c, lanes)
    assert len(np.unique(places)) == places.size
    assert places.min() >= 0
    assert places.max() < layout.size


def test_planes_do_not_lie_a_multiple_of_a_page_apart():
    assert blocked((1, 64, 56, 56), 16).plane * 4 % 4096 != 0


def test_a_layout_is_flat_only_without_a_halo():
    assert blocked((1, 16, 4, 4), 16, Halo(1, 1, 1, 1)).flat() is None
    flat = blocked((2, 16, 4, 5), 16).flat()
    assert flat is not None
    assert (flat.h, flat.w) == (1, 20)


@given(st.integers(1, 200), st.integers(1, 8))
def test_units_cover_all_blocks_in_nearly_equal_parts(blocks, tile_blocks):
    bounds = unit_bounds(blocks, tile_blocks)
    sizes = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, blocks)
    assert sizes.min() >= 1
    assert sizes.max() <= tile_blocks
    assert sizes.max() - sizes.min() <= 1


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 24), st.sampled_from([4, 8, 16]))
def test_merged_groups_divide_the_groups_and_fill_blocks(inputs, outputs, groups, width):
    merged = mergeable_groups(inputs, outputs, groups, width)
    assert groups % merged == 0
    assert merged == groups or (merged * inputs % width == 0 and merged * outputs % width == 0)


def test_merging_groups_puts_zeros_between_them():
    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 2, 1, 1)
    merged = merge_groups(weights, 2, 2)[:, :, 0, 0]
    np.testing.assert_array_equal(merged, [[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 5, 6], [0, 0, 7, 8]])


@settings(deadline=None)
@given(st.integers(1, 70), st.integers(1, 40), st.sampled_from([AVX2, AVX512]))
def test_packing_for_conv_direct_follows_the_kernel_document(outputs, inputs, tier):
    weights = np.random.default_rng(0).standard_normal((outputs, inputs, 2, 3), dtype=np.float32)
    width = tier.vector_width
    packed = pack_direct(weights, 1, width, tier.tile_blocks, width)
    assert packed.size == divide_up(outputs, width) * width * inputs * 6
    bounds = unit_bounds(divide_up(outputs, width), tier.tile_blocks)
    at = 0
    for begin, end in itertools.pairwise(bounds):
        for first in range(0, inputs, width):
            for ky, kx in np.ndindex(2, 3):
                for i in range(first, min(first + width, inputs)):
                    run = packed[at : at + (end - begin) * width]
                    at += run.size
                    expected = weights[begin * width : end * width, i, ky, kx]
                    np.testing.assert_array_equal(run[: expected.size], expected)
                    assert not run[expected.size :].any()
    assert at == packed.size


def test_packing_for_conv_depthwise():
    weights = np.arange(2 * 3 * 3, dtype=np.float32).reshape(2, 1, 3, 3)
    packed = pack_depthwise(weights, 4).reshape(1, 3, 3, 4)
    np.testing.assert_array_equal(packed[0, :, :, 1], weights[1, 0])
    assert not packed[..., 2:].any()


def test_folding_a_kernel_row_puts_columns_before_channels():
    weights = np.random.default_rng(0).standard_normal((2, 3, 5, 7))
    folded = fold_row(weights)
    assert folded.shape == (2, 21, 5, 1)
    assert folded[1, 4 * 3 + 2, 3, 0] == weights[1, 2, 3, 4]


@given(st.integers(1, 300))
def test_floats_for_weights_are_as_many_as_asked_for_and_aligned(count):
    floats = aligned_floats(count)
    assert floats.shape == (count,)
    assert floats.ctypes.data % ALIGNMENT_BYTES == 0
    assert floats.flags.writeable


@pytest.mark.parametrize(("outputs", "inputs", "lanes"), [(128, 512, 64), (33, 70, 32), (16, 10, 16)])
def test_weights_of_preactivated_convolutions_are_packed_piece_by_piece(outputs, inputs, lanes):
    weights = np.random.default_rng(0).standard_normal((outputs, inputs, 1, 1), dtype=np.float32)
    pieces = [pack_direct(weights[:, first : first + lanes], 1, 16, 4, 16) for first in range(0, inputs, lanes)]
    np.testing.assert_array_equal(pack_pieces(weights, lanes, 16, 4), np.concatenate(pieces))


def test_absent_biases_are_zero():
    np.testing.assert_array_equal(fill_channels(None, 3, 1, 4), np.zeros(4))
    np.testing.assert_array_equal(fill_channels(np.ones(3, np.float32), 3, 1, 4), [1, 1, 1, 0])


@pytest.mark.parametrize("tile", [2, 4, 6])
def test_packing_for_conv_winograd(tile):
    weights = np.random.default_rng(0).standard_normal((21, 3, 3, 3), dtype=np.float32)
    packed = pack_winograd(weights, tile, 4, 4).reshape(-1)
    positions = (tile + 2) ** 2
    assert packed.size == 24 * 3 * positions
    first_unit = packed[: 3 * 4 * 3 * positions].reshape(positions, 3, 12)
    corner = WINOGRAD_G[tile][0, 0] ** 2
    np.testing.assert_allclose(first_unit[0, 2], weights[:12, 2, 0, 0] * corner, rtol=1e-6)
    np.testing.assert_array_equal(first_unit[-1, 1], weights[:12, 1, 2, 2])
    last_unit = packed[-3 * 4 * 3 * positions :].reshape(positions, 3, 12)
    assert not last_unit[..., 9:].any()


@pytest.mark.parametrize("tile", [2, 4, 6])
def test_winograd_weights_sum_up_to_those_of_the_convolution(tile):
    """Row 0 of G belongs to the point 0, the last to infinity; the rows between add up to the taps' even part."""
    g = WINOGRAD_G[tile]
    taps = np.array([1.0, 10.0, 100.0])
    at = (0, 1, -1, 2, -2, 0.5, -0.5)[: tile + 1]
    for row, point in zip(g, at, strict=False):
        polynomial = taps @ [1, point, point**2]
        assert np.isclose(abs(row @ taps / polynomial), abs(row[0]))


@pytest.mark.parametrize(
    ("channels", "size", "algorithm"),
    [(64, 56, "winograd6"), (128, 28, "winograd4"), (512, 7, "winograd2"), (512, 2, "direct"), (8, 56, "direct")],
)
def test_winograd_is_for_many_pixels_a_channel(channels, size, algorithm):
    shape = ConvShape(
        images=1, inputs=channels, outputs=channels, kernel=(3, 3), in_size=(size, size), size=(size, size)
    )
    assert by_cost(Machine(tier=AVX512, threads=1))(shape).algorithm == algorithm


@given(st.integers(1, 200), st.sampled_from([2, 4, 6]), st.sampled_from([AVX2, AVX512]))
def test_a_thread_takes_at_least_a_register_tile_of_winograd_tiles(in_blocks, tile, tier):
    assert tiles_together(in_blocks, tile, Machine(tier=tier, threads=1)) >= tier.tile_pixels


works = st.builds(
    Work,
    groups=st.sampled_from([1, 2, 4]),
    in_blocks=st.integers(1, 200),
    lanes=st.sampled_from([8, 16, 128]),
    taps=st.sampled_from([1, 9, 49]),
    out_blocks=st.integers(1, 200),
    rows=st.integers(1, 300),
    columns=st.integers(1, 4000),
    x_bytes=st.integers(1, 10**8),
    kernel_rows=st.sampled_from([1, 3, 30]),
)


@given(works, st.sampled_from([AVX2, AVX512]), st.integers(1, 64))
def test_any_partition_is_one_the_kernel_can_run(work, tier, threads):
    cut = partition(work, tier, threads, ASSUMED)
    assert threads % cut.channel_split == 0
    assert 1 <= cut.chunk_blocks <= work.in_blocks
    assert cut.chunk_tiles >= 1


def test_wide_layers_are_cut_by_pixels_and_deep_ones_by_channels():
    wide = Work(groups=1, in_blocks=4, lanes=16, taps=9, out_blocks=4, rows=56, columns=56, x_bytes=800_000)
    deep = Work(groups=1, in_blocks=32, lanes=16, taps=9, out_blocks=32, rows=7, columns=7, x_bytes=100_000)
    assert partition(wide, AVX512, 2, ASSUMED).channel_split == 1
    assert partition(deep, AVX512, 2, ASSUMED).channel_split == 2


def test_a_piece_reads_few_planes_at_a_time():
    """The second-level cache would hold the weights of all 64 blocks."""
    point = Work(groups=1, in_blocks=64, lanes=8, taps=1, out_blocks=32, rows=28, columns=28, x_bytes=1_600_000)
    assert partition(point, AVX2, 1, ASSUMED).chunk_blocks == 16
    assert partition(replace(point, lanes=16), AVX512, 1, ASSUMED).chunk_blocks == 8


def test_rows_under_a_kernel_that_the_cache_does_not_hold_are_planes_of_their_own():
    """A video's frames are the rows of an image whose kernel goes over time alone."""
    frames = Work(
        groups=1, in_blocks=18, lanes=8, taps=3, out_blocks=8, rows=16, columns=3136, x_bytes=28_901_376, kernel_rows=3
    )
    assert partition(frames, AVX2, 1, ASSUMED).chunk_blocks == 5
    assert partition(replace(frames, columns=56), AVX2, 1, ASSUMED).chunk_blocks == 9
    assert partition(replace(frames, kernel_rows=1), AVX2, 1, ASSUMED).chunk_blocks == 9


def test_weights_come_from_memory_twice_only_where_pixels_would_come_from_afar_much_oftener():
    """Pixels of 7x7 with 2048 channels do not fit half of the cache, and are read again for each unit all the same."""
    deep = Work(groups=1, in_blocks=256, lanes=8, taps=1, out_blocks=128, rows=7, columns=7, x_bytes=401_408)
    wide = Work(groups=1, in_blocks=64, lanes=8, taps=1, out_blocks=32, rows=28, columns=28, x_bytes=1_605_632)
    tall = replace(AVX2, tile_blocks=3, tile_pixels=4)
    assert partition(deep, tall, 1, ASSUMED).chunk_tiles == 14
    assert partition(wide, tall, 1, ASSUMED).chunk_tiles == 28
