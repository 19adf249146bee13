"""Which tier runs, which algorithm a shape gets, and how its work is cut."""

import json
import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from engine_native.graphs import GraphMaker, use_tier
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.choosing import always, by_cost, cheapest, expected_cycles
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.convolutions.cost import overlapped, step_cycles
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.caches import ASSUMED
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import TIER_VARIABLE, Tier, available_tiers, choose_tier

AVX2 = Tier("avx2", 8, 2, 6)
AVX512 = Tier("avx512", 16, 4, 6)
NEON = Tier("neon", 4, 2, 8)
TIERS = st.sampled_from([AVX2, AVX512, NEON])
HERE = available_tiers()


AVX2_TALL = Tier("avx2", 8, 2, 6, 3, 4)


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
    lambda images, inputs, outputs, size: ConvShape(
        images=images, inputs=inputs, outputs=outputs, kernel=(3, 3), pads=(1, 1), in_size=size, size=size
    ),
    images=st.integers(1, 8),
    inputs=st.integers(1, 600),
    outputs=st.integers(1, 600),
    size=st.tuples(st.integers(1, 112), st.integers(1, 112)),
)
any_shapes = st.builds(
    lambda channels, kernel, strides, size, external: ConvShape(
        images=1,
        inputs=channels[1],
        outputs=channels[1] if channels[0] else channels[2],
        groups=channels[1] if channels[0] else 1,
        kernel=kernel,
        strides=strides,
        in_size=size,
        size=size,
        from_outside=external,
    ),
    channels=st.tuples(st.booleans(), st.integers(1, 300), st.integers(1, 300)),
    kernel=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    size=st.tuples(st.integers(1, 112), st.integers(1, 112)),
    external=st.booleans(),
)


def chosen(shape: ConvShape, tier: Tier, threads: int = 1) -> str:
    return by_cost(Machine(tier=tier, threads=threads))(shape).algorithm


@given(any_shapes, TIERS, st.integers(1, 16))
def test_every_shape_gets_an_algorithm_that_can_compute_it(shape, tier, threads):
    machine = Machine(tier=tier, threads=threads)
    choice = by_cost(machine)(shape)
    algorithm = ALGORITHMS[choice.algorithm]
    assert algorithm.applies(shape, tier)
    assert choice in algorithm.candidates(shape, machine)
    assert algorithm.cycles(shape, choice, machine) > 0


@given(any_shapes, TIERS, st.integers(2, 64))
def test_the_number_of_threads_has_no_say_in_the_algorithm(shape, tier, threads):
    assert chosen(shape, tier, threads) == chosen(shape, tier)


@given(any_shapes, TIERS, st.integers(1, 16))
def test_choices_can_be_kept_as_json(shape, tier, threads):
    choice = by_cost(Machine(tier=tier, threads=threads))(shape)
    assert Choice(**json.loads(json.dumps(asdict(choice)))) == choice


@given(shapes, TIERS)
def test_narrow_layers_are_no_case_for_winograd(shape, tier):
    if min(shape.inputs, shape.outputs) < tier.vector_width:
        assert not chosen(shape, tier).startswith("winograd")


@given(shapes, TIERS, st.integers(2, 6))
def test_more_images_never_speak_against_winograd(shape, tier, factor):
    """Its cost a shape is that of the weights, which more images share where all their tiles are taken up together."""
    more, machine = replace(shape, images=shape.images * factor), Machine(tier=tier, threads=1)
    best = by_cost(machine)(shape)
    if best.algorithm.startswith("winograd"):
        together = cheapest(ALGORITHMS[best.algorithm], more, machine).chunk_tiles >= factor * best.chunk_tiles
        assert not together or chosen(more, tier).startswith("winograd")


@given(shapes, TIERS, st.sampled_from(["direct", "winograd2", "winograd4"]))
def test_more_work_is_never_expected_to_take_less(shape, tier, name):
    machine, algorithm = Machine(tier=tier, threads=1), ALGORITHMS[name]
    more = replace(shape, images=2 * shape.images)
    assert expected_cycles(algorithm, more, machine) >= 0.999 * expected_cycles(algorithm, shape, machine)


@given(shapes, TIERS)
def test_faster_memory_never_makes_anything_slower(shape, tier):
    slow = Machine(tier=tier, threads=1)
    fast = replace(slow, memory_bytes_per_cycle=2 * slow.memory_bytes_per_cycle)
    for algorithm in ("direct", "winograd2", "winograd4"):
        assert expected_cycles(ALGORITHMS[algorithm], shape, fast) <= expected_cycles(
            ALGORITHMS[algorithm], shape, slow
        )


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_arithmetic_and_memory_hide_a_part_of_each_other(compute, memory):
    both = overlapped(compute, memory)
    assert max(compute, memory) <= both <= compute + memory
    assert both == overlapped(memory, compute)


@given(TIERS, st.integers(1, 4), st.integers(1, 14))
def test_a_register_tile_is_never_faster_than_its_multiplications(tier, blocks, pixels):
    machine = Machine(tier=tier, threads=1)
    assert step_cycles(machine, blocks, pixels) >= blocks * pixels / machine.multiply_adds_per_cycle


@given(st.integers(16, 600), st.integers(16, 600), TIERS)
def test_one_pixel_is_never_worth_a_tile(inputs, outputs, tier):
    one = ConvShape(images=1, inputs=inputs, outputs=outputs, kernel=(3, 3), in_size=(3, 3), size=(1, 1))
    assert chosen(one, tier) == "direct"


@settings(deadline=None, max_examples=60)
@given(
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    pads=st.tuples(*[st.integers(1, 2)] * 4),
    channels=st.sampled_from([16, 64]),
    tier=TIERS,
    algorithm=st.sampled_from(["direct", "winograd2", "winograd4"]),
)
def test_the_halo_holds_every_tap_of_every_tile(size, pads, channels, tier, algorithm):
    maker = GraphMaker()
    y = maker.conv(maker.input("x", 1, channels, *size), np.ones((channels, channels, 3, 3)), pads=pads)
    graph = maker.graph(y)
    program = lower(graph, tier, 2, always(algorithm, Machine(tier=tier, threads=2)))
    (step,) = [step for step in program.steps if step.family == f"conv_{algorithm}"]
    halo = step.x.layout.halo
    rows, columns = graph.shape(y)[2:]
    tile = {"direct": 1, "winograd2": 2, "winograd4": 4}[algorithm]
    assert (halo.top, halo.left) == pads[:2]
    for out, first, last, length in (
        (rows, halo.top, halo.bottom, size[0]),
        (columns, halo.left, halo.right, size[1]),
    ):
        last_tap = -(-out // tile) * tile - 1 + 2 - first  # the last output's last tap, in rows of the image
        assert last_tap <= length - 1 + last  # it lies in the halo
        assert last == max(0, last_tap - (length - 1))  # and the halo is not larger than that


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
    assert partition(work, tier, 1, ASSUMED).channel_split == 1


@given(works, TIERS, st.integers(1, 16))
def test_no_thread_is_left_without_work_where_there_is_enough(work, tier, threads):
    cut = partition(work, tier, threads, ASSUMED)
    tiles = work.rows * -(-work.columns // tier.tile_pixels)
    units = work.groups * -(-work.out_blocks // tier.tile_blocks)
    if units >= threads and tiles >= threads:
        assert cut.channel_split <= units
        assert threads // cut.channel_split <= tiles


def test_short_rows_and_many_channels_are_cut_into_tall_tiles():
    """Seven pixels are 6 + 1, or 4 + 3 of more blocks; many blocks in threes read the pixels less often than in twos.

    Four blocks are two and two in either tile, and then the wider one is taken up less often.
    """
    machine = Machine(tier=AVX2_TALL, threads=1)
    short = ConvShape(
        images=1, inputs=512, outputs=512, kernel=(3, 3), strides=(2, 2), pads=(1, 1), in_size=(14, 14), size=(7, 7)
    )
    many, few = (
        ConvShape(images=1, inputs=64, outputs=outputs, kernel=(1, 1), in_size=(56, 56), size=(56, 56), flat=True)
        for outputs in (256, 32)
    )
    assert [by_cost(machine)(shape).tile_blocks for shape in (short, many, few)] == [3, 3, 2]
    assert by_cost(Machine(tier=AVX2, threads=1))(short).tile_blocks == 2


@given(works, TIERS, st.integers(1, 16))
def test_chunks_go_through_all_input_blocks_in_nearly_equal_parts(work, tier, threads):
    cut = partition(work, tier, threads, ASSUMED)
    chunks = -(-work.in_blocks // cut.chunk_blocks)
    last = work.in_blocks - (chunks - 1) * cut.chunk_blocks
    assert 1 <= last <= cut.chunk_blocks
    tiles = work.rows * -(-work.columns // tier.tile_pixels)
    assert cut.chunk_tiles <= tiles
