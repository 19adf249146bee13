"""Which tier runs, which algorithm a shape gets, and how its work is cut."""

import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native.graphs import GraphMaker, use_tier
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.lower import lower
from powerlab.engine.lower.convolution import needed_halo
from powerlab.engine.lower.partition import Work, partition
from powerlab.engine.lower.winograd import DIRECT, Shape, choose_tile
from powerlab.engine.tiers import TIER_VARIABLE, Tier, available_tiers, choose_tier

AVX2 = Tier("avx2", 8, 2, 6)
AVX512 = Tier("avx512", 16, 4, 6)
NEON = Tier("neon", 4, 2, 8)
TIERS = st.sampled_from([AVX2, AVX512, NEON])
HERE = available_tiers()


def relu_graph():
    maker = GraphMaker()
    return maker.graph(maker.node("Clamp", (maker.input("x", 1, 20, 3, 3),), (1, 20, 3, 3), clamp=(0.0, np.inf)))


def test_tiers_are_listed_from_the_widest_vectors_down():
    widths = [tier.vector_width for tier in HERE]
    assert widths == sorted(widths, reverse=True)
    assert len({tier.name for tier in HERE}) == len(HERE)
    for tier in HERE:
        assert tier.vector_width in {4, 8, 16}
        assert tier.tile_blocks >= 1
        assert tier.tile_pixels >= 1


def test_without_a_wish_the_best_tier_runs(monkeypatch):
    monkeypatch.delenv(TIER_VARIABLE, raising=False)
    assert choose_tier() == HERE[0]
    monkeypatch.setenv(TIER_VARIABLE, "")
    assert choose_tier() == HERE[0]
    assert Session(relu_graph()).tier == HERE[0].name


@pytest.mark.parametrize("tier", HERE, ids=lambda tier: tier.name)
def test_each_tier_runs_its_own_kernels_when_asked(tier):
    with use_tier(tier.name):
        session = Session(relu_graph())
    assert session.tier == tier.name
    assert all(kernel.endswith(f"_{tier.name}") for kernel, _ in session.steps())
    x = np.linspace(-1, 1, 180, dtype=np.float32).reshape(1, 20, 3, 3)
    np.testing.assert_array_equal(session.run({"x": x})["t0"], np.maximum(x, 0))


def test_a_name_given_wins_over_the_environment():
    with use_tier("mmx"):
        assert choose_tier(HERE[-1].name) == HERE[-1]
        assert choose_tier("") == HERE[0]


@pytest.mark.parametrize("name", ["mmx", "AVX2", " avx2", "avx", "avx512 avx2", "🙂", "x" * 1000], ids=ascii)
def test_a_wrong_tier_is_one_sentence_that_names_the_right_ones(name):
    names = ", ".join(tier.name for tier in HERE)
    wanted = f'the engine tier "{name}" is not one this processor can run; use {names}, or unset {TIER_VARIABLE}.'
    with use_tier(name), pytest.raises(PowerlabError, match=f"^{re.escape(wanted)}$"):
        Session(relu_graph())
    with pytest.raises(PowerlabError, match=re.escape(wanted)):
        choose_tier(name)


def test_a_session_keeps_its_tier_when_the_wish_changes():
    with use_tier(HERE[-1].name):
        session = Session(relu_graph())
    with use_tier("mmx"):
        assert session.run({"x": np.ones((1, 20, 3, 3), np.float32)})["t0"].min() == 1
    assert session.tier == HERE[-1].name
    assert os.environ.get(TIER_VARIABLE) != "mmx"


shapes = st.builds(
    Shape,
    images=st.integers(1, 8),
    inputs=st.integers(1, 600),
    outputs=st.integers(1, 600),
    rows=st.integers(1, 112),
    columns=st.integers(1, 112),
)


@given(shapes, TIERS)
def test_every_shape_gets_an_algorithm_and_narrow_ones_the_direct(shape, tier):
    tile = choose_tile(shape, tier)
    assert tile in {DIRECT, 2, 4}
    if min(shape.inputs, shape.outputs) < tier.vector_width:
        assert tile == DIRECT


@given(shapes, TIERS, st.integers(2, 6))
def test_more_images_never_speak_against_winograd(shape, tier, factor):
    """Its cost a shape is that of the weights, which more images share."""
    more = Shape(shape.images * factor, shape.inputs, shape.outputs, shape.rows, shape.columns)
    if choose_tile(shape, tier) != DIRECT:
        assert choose_tile(more, tier) != DIRECT


@given(shapes, TIERS)
def test_rows_and_columns_count_alike(shape, tier):
    turned = Shape(shape.images, shape.inputs, shape.outputs, shape.columns, shape.rows)
    assert choose_tile(turned, tier) == choose_tile(shape, tier)


@given(st.integers(1, 4), st.integers(16, 600), st.integers(16, 600), TIERS)
def test_one_pixel_is_never_worth_a_tile(images, inputs, outputs, tier):
    assert choose_tile(Shape(images, inputs, outputs, 1, 1), tier) == DIRECT


@settings(deadline=None, max_examples=60)
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    pads=st.tuples(*[st.integers(1, 2)] * 4),
    channels=st.sampled_from([16, 64]),
    tier=TIERS,
)
def test_the_halo_holds_every_tap_of_every_tile(size, pads, channels, tier):
    maker = GraphMaker()
    y = maker.conv(maker.input("x", 1, channels, *size), np.ones((channels, channels, 3, 3)), pads=pads)
    graph = maker.graph(y)
    (node,) = graph.nodes
    halo = needed_halo(graph, node, tier)
    rows, columns = graph.shape(y)[2:]
    tile = choose_tile(Shape(1, channels, channels, rows, columns), tier)
    assert (halo.top, halo.left) == pads[:2]
    for out, first, last, length in (
        (rows, halo.top, halo.bottom, size[0]),
        (columns, halo.left, halo.right, size[1]),
    ):
        tiles = -(-out // tile) * tile if tile else out
        last_tap = tiles - 1 + 2 - first  # the last output's last tap, in rows of the image
        assert last_tap <= length - 1 + last  # it lies in the halo
        assert last == max(0, last_tap - (length - 1))  # and the halo is not larger than that
    families = {step.family for step in lower(graph, tier, 2).steps}
    assert (f"conv_winograd{tile}" if tile else "conv_direct") in families


works = st.builds(
    Work,
    groups=st.sampled_from([1, 2, 8]),
    in_blocks=st.integers(1, 64),
    lanes=st.sampled_from([4, 8, 16]),
    taps=st.sampled_from([1, 9, 25]),
    out_blocks=st.integers(1, 64),
    rows=st.integers(1, 224),
    columns=st.integers(1, 224),
    x_bytes=st.integers(1, 10**7),
)


@given(works, TIERS)
def test_one_thread_does_all_channels(work, tier):
    assert partition(work, tier, 1).channel_split == 1


@given(works, TIERS, st.integers(1, 16))
def test_no_thread_is_left_without_work_where_there_is_enough(work, tier, threads):
    cut = partition(work, tier, threads)
    tiles = work.rows * -(-work.columns // tier.tile_pixels)
    units = work.groups * -(-work.out_blocks // tier.tile_blocks)
    if units >= threads and tiles >= threads:
        assert cut.channel_split <= units
        assert threads // cut.channel_split <= tiles


@given(works, TIERS, st.integers(1, 16))
def test_chunks_go_through_all_input_blocks_in_nearly_equal_parts(work, tier, threads):
    cut = partition(work, tier, threads)
    chunks = -(-work.in_blocks // cut.chunk_blocks)
    last = work.in_blocks - (chunks - 1) * cut.chunk_blocks
    assert 1 <= last <= cut.chunk_blocks
    tiles = work.rows * -(-work.columns // tier.tile_pixels)
    assert cut.chunk_tiles <= tiles
