"""Concatenation in place: what is joined lies where it belongs, once; what cannot lie there is copied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice
from engine_native.numpy_reference import conv, pool
from powerlab.engine.codegen import lower
from powerlab.engine.codegen.concat_in_place import Place, find_places
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.layout import Halo
from powerlab.engine.program.program import Program
from powerlab.engine.target.tiers import Tier, choose_tier

AVX512 = Tier("avx512", 16, 4, 6)
SAME = {"pads": (1, 1, 1, 1)}
SIZE = (6, 7)


def ones(outputs: int, inputs: int, kernel: int = 1) -> np.ndarray:
    return np.ones((outputs, inputs, kernel, kernel), np.float32)


def join(maker: GraphMaker, *parts: str) -> str:
    images, _, *size = maker.tensors[parts[0]].shape
    channels = sum(maker.tensors[part].shape[1] for part in parts)
    return maker.node("Concat", parts, (images, channels, *size), axis=1)


def image(maker: GraphMaker, channels: int, name: str = "x") -> str:
    """Return a tensor of the arena, made of an input."""
    return maker.conv(maker.input(name, 1, channels, *SIZE), ones(channels, channels))


def copies(program: Program) -> int:
    return sum(step.family == "copy" for step in program.steps)


def test_a_dense_block_is_one_piece_of_memory(maker):
    x = image(maker, 32)
    for _ in range(3):
        x = join(maker, x, maker.conv(x, ones(16, maker.tensors[x].shape[1], 3), **SAME))
    program = lower(maker.graph(x), AVX512, 2)
    assert copies(program) == 0
    convolutions = [step for step in program.steps if step.family.startswith("conv_")]
    assert len({step.out.storage.number for step in convolutions}) == 1
    assert [step.out.layout.c for step in convolutions] == [32, 16, 16, 16]
    planes = [step.out.offset // step.out.layout.plane for step in convolutions]
    assert planes == [0, 2, 3, 4]
    assert convolutions[0].out.storage.floats == 5 * convolutions[0].out.layout.plane


def test_all_that_share_memory_have_the_halo_one_of_them_needs(maker):
    left, right = image(maker, 16, "left"), image(maker, 32, "right")
    padded = maker.conv(right, ones(8, 32, 3), **SAME)
    joined = join(maker, left, right)
    program = lower(maker.graph(padded, maker.conv(joined, ones(8, 48))), AVX512, 1)
    parts = [step.out for step in program.steps if step.out.layout.blocks in (1, 2) and step.label in ("n0", "n1")]
    assert {part.storage.number for part in parts} == {parts[0].storage.number}
    assert {part.layout.halo for part in parts} >= {Halo(1, 1, 1, 1)}
    assert len({part.layout.halo for part in parts}) == 1
    assert copies(program) == 0


def test_who_reads_a_part_reads_it_in_place(maker):
    left, right = image(maker, 16, "left"), image(maker, 16, "right")
    joined = join(maker, left, right)
    program = lower(maker.graph(maker.conv(right, ones(16, 16)), maker.conv(joined, ones(16, 32))), AVX512, 1)
    reader, whole = [step for step in program.steps if step.family == "conv_direct"][2:]
    assert reader.x.storage == whole.x.storage
    assert reader.x.offset == whole.x.layout.plane


def places(maker: GraphMaker, *outputs: str) -> dict[str, Place]:
    return find_places(maker.graph(*outputs), 16)


def test_a_tensor_lies_in_one_place_and_is_copied_to_others(maker):
    part, other = image(maker, 16, "part"), image(maker, 16, "other")
    twice = join(maker, part, part)
    again = join(maker, other, part)
    found = places(maker, twice, again)
    assert found == {other: Place(again, 0), part: Place(again, 16)}
    assert copies(lower(maker.graph(twice, again), AVX512, 1)) == 2


def test_what_comes_from_outside_is_copied(maker):
    outside = maker.input("outside", 1, 16, *SIZE)
    joined = join(maker, image(maker, 16), outside, maker.constant(np.ones((1, 16, *SIZE))))
    assert list(places(maker, joined)) == ["t0"]
    assert copies(lower(maker.graph(joined), AVX512, 1)) == 2


@pytest.mark.parametrize(
    ("channels", "in_place"), [((16, 5), True), ((16, 32, 1), True), ((5, 16), False), ((16, 5, 16), False)]
)
def test_only_the_last_part_may_leave_a_block_unfilled(maker, channels, in_place):
    parts = [image(maker, count, f"x{index}") for index, count in enumerate(channels)]
    joined = join(maker, *parts)
    assert set(places(maker, joined)) == (set(parts) if in_place else set())
    families = [step.family for step in lower(maker.graph(joined), AVX512, 1).steps[:-1]]
    assert ("move_channels" in families) != in_place
    assert "reorder_to_planes" not in families


def test_rows_are_not_joined_in_place(maker):
    joined = maker.node("Concat", (image(maker, 16, "a"), image(maker, 16, "b")), (1, 16, 12, 7), axis=2)
    assert places(maker, joined) == {}


def test_a_tower_of_joins_lies_in_the_outermost(maker):
    a, b, c, d = (image(maker, 16, name) for name in "abcd")
    left, right = join(maker, a, b), join(maker, c, d)
    whole = join(maker, right, left)
    found = places(maker, whole, left)
    assert {name: place.first_channel for name, place in found.items()} == {
        right: 0,
        left: 32,
        c: 0,
        d: 16,
        a: 32,
        b: 48,
    }
    assert {place.whole for place in found.values()} == {whole}


@st.composite
def dense_networks(draw):
    """Return a graph that grows by convolutions, pools and joins, and what it computes, in float64."""
    maker = GraphMaker()
    width = choose_tier().vector_width
    images, size = draw(st.integers(1, 2)), (draw(st.integers(3, 9)), draw(st.integers(3, 9)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    whole_blocks = st.integers(1, 2).map(lambda blocks: blocks * width)
    counts = st.one_of(whole_blocks, whole_blocks, st.integers(1, 2 * width))
    channels = draw(counts)
    arrays = {"x": generator.standard_normal((images, channels, *size), dtype=np.float32)}
    values = {maker.input("x", images, channels, *size): arrays["x"].astype(np.float64)}
    for _ in range(draw(st.integers(2, 7))):
        source = draw(st.sampled_from(list(values)))
        kind = draw(st.sampled_from(["conv", "pad", "pool", "join", "join"]))
        if kind == "join":
            parts = draw(st.lists(st.sampled_from(list(values)), min_size=1, max_size=3))
            parts = [source, *parts]
            if sum(values[part].shape[1] for part in parts) <= 8 * width:
                values[join(maker, *parts)] = np.concatenate([values[part] for part in parts], axis=1)
        elif kind == "pool":
            window = {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)}
            made = maker.node("MaxPool", (source,), values[source].shape, **window)
            values[made] = pool(values[source], np.max, -np.inf, **window)
        else:
            kernel = 3 if kind == "pad" else 1
            inputs, outputs = values[source].shape[1], draw(counts)
            weights = generator.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs * kernel**2)
            weights = weights.astype(np.float32)
            pads = (kernel // 2,) * 4
            made = maker.conv(source, weights, pads=pads)
            values[made] = conv(
                values[source], weights, strides=(1, 1), pads=pads, dilations=(1, 1), group=1, clamp=NO_CLAMP
            )
    outputs = draw(st.lists(st.sampled_from(list(values)[1:] or ["x"]), min_size=1, max_size=3, unique=True))
    return (
        maker.graph(*[name for name in outputs if name != "x"] or [maker.conv("x", ones(3, channels))]),
        arrays,
        values,
    )


@settings(deadline=None, max_examples=60)
@given(network=dense_networks(), threads=st.integers(1, 3))
def test_any_dense_network_computes_what_its_parts_do(network: tuple[Graph, dict, dict], threads):
    graph, arrays, values = network
    for name, found in run_twice(graph, threads, **arrays).items():
        if name in values:
            np.testing.assert_allclose(found, values[name], rtol=0, atol=2e-4 * (np.abs(values[name]).max() + 1))
