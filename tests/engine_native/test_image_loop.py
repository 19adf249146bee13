"""Batches that are computed image by image: the same bits, less memory, and only where that saves traffic."""

import numpy as np
import pytest

from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice
from powerlab.engine import Session
from powerlab.engine.codegen import image_loop, lower
from powerlab.engine.codegen.image_loop import looped_nodes, threads_apart
from powerlab.engine.codegen.image_steps import by_image
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise
from powerlab.engine.runtime.arena import lay_out
from powerlab.engine.target.tiers import Tier, choose_tier

AVX512 = Tier("avx512", 16, 4, 6)
SAME = {"pads": (1, 1, 1, 1)}
RELU = (0.0, np.inf)


def weights(outputs: int, inputs: int, kernel: int = 1) -> np.ndarray:
    return np.random.default_rng(outputs + inputs).standard_normal((outputs, inputs, kernel, kernel), np.float32) / 8


@pytest.fixture
def small_caches(monkeypatch) -> None:
    """Make every operand too large for the caches."""
    monkeypatch.setattr(image_loop, "_LEAST_BYTES", 0)


def bottleneck(maker: GraphMaker, images: int) -> Graph:
    x = maker.input("x", images, 64, 24, 24)
    first = maker.conv(x, weights(16, 64), clamp=RELU)
    second = maker.conv(first, weights(16, 16, 3), **SAME, clamp=RELU)
    return maker.graph(maker.conv(second, weights(64, 16), residual=x, clamp=RELU))


def test_small_networks_go_through_as_a_batch(maker):
    assert looped_nodes(bottleneck(maker, 8)) == 0


@pytest.mark.usefixtures("small_caches")
def test_one_image_needs_no_loop(maker):
    graph = bottleneck(maker, 1)
    assert looped_nodes(graph) == 0
    program = lower(graph, AVX512, 2)
    assert (program.looped, program.images) == (0, 1)


@pytest.mark.usefixtures("small_caches")
def test_what_lies_between_looped_steps_has_room_for_one_image(maker):
    graph = bottleneck(maker, 8)
    assert looped_nodes(graph) == 3
    program = lower(graph, AVX512, 2)
    assert (program.looped, program.images) == (4, 8)
    reorder, first, second, last, _ = program.steps
    assert [step.out.layout.n for step in (reorder, first, second, last)] == [1, 1, 1, 1]
    assert first.out.storage.floats == first.out.layout.size
    assert (first.out.shift, second.out.shift) == (0, 0)
    assert reorder.x.shift == 64 * 24 * 24, "the image from outside"
    assert last.out.shift == last.out.layout.image
    assert last.out.storage.floats == 8 * last.out.layout.image, "read by a step behind the loop"


@pytest.mark.usefixtures("small_caches")
def test_results_of_the_loop_do_not_share_memory_with_its_first_steps(maker):
    program = lower(bottleneck(maker, 4), AVX512, 1)
    arena = lay_out(program)
    result = program.steps[3].out.storage
    begin, end = arena.offsets[result.number], arena.offsets[result.number] + result.floats
    for step in program.steps[:3]:
        other = step.out.storage
        at = arena.offsets[other.number]
        assert at + other.floats <= begin or at >= end


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("images", [2, 5, 6, 13])
def test_the_loop_changes_no_bit(maker, monkeypatch, images, threads):
    graph = bottleneck(maker, images)
    x = np.random.default_rng(0).standard_normal((images, 64, 24, 24), np.float32)
    assert lower(graph, choose_tier(), threads).looped == 4
    (looped,) = run_twice(graph, threads, x=x).values()
    monkeypatch.setattr(image_loop, "_LEAST_BYTES", 1 << 40)
    assert lower(graph, choose_tier(), threads).looped == 0
    (whole,) = run_twice(graph, threads, x=x).values()
    np.testing.assert_array_equal(looped, whole)


def test_the_loop_ends_where_weights_outweigh_images(maker, monkeypatch):
    monkeypatch.setattr(image_loop, "_LEAST_BYTES", 1 << 10)
    x = maker.input("x", 8, 32, 16, 16)
    for _ in range(3):
        x = maker.conv(x, weights(32, 32), clamp=NO_CLAMP)
    x = maker.conv(x, weights(32, 32, 16), clamp=NO_CLAMP)  # a megabyte of weights, for one pixel an image
    assert looped_nodes(maker.graph(maker.conv(x, weights(8, 32), clamp=NO_CLAMP))) == 3


@pytest.mark.usefixtures("small_caches")
def test_steps_that_mix_images_end_the_loop(maker):
    program = lower(bottleneck(maker, 1), AVX512, 1)
    assert by_image(program, 4, 8, 1) == program, "no step has eight images"


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("model", ["alexnet", "densenet121@64", "mobilenetv2@64", "yolov3@64", "efficientnet-b0@64"])
def test_networks_give_the_same_bits_image_by_image(monkeypatch, model):
    graph = optimise(load_graph(model, batch_size=2))
    assert 0 < looped_nodes(graph) < len(graph.nodes)
    session = Session(graph, threads=2)
    inputs = {
        name: np.random.default_rng(1).standard_normal(shape, np.float32) for name, shape in session.inputs.items()
    }
    looped = session.run(inputs)
    monkeypatch.setattr(image_loop, "_LEAST_BYTES", 1 << 40)
    whole = Session(graph, threads=2)
    expected = whole.run(inputs)
    # What weights cost an image decides between algorithms, too, which round differently.
    alike = [kernel for kernel, _ in session.steps()] == [kernel for kernel, _ in whole.steps()]
    for name, value in looped.items():
        tolerance = 0 if alike else 1e-5 * np.abs(expected[name]).max()
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("images", "threads", "apart"), [(8, 1, 1), (8, 2, 2), (2, 2, 1), (9, 2, 2), (7, 2, 1), (6, 3, 3), (8, 16, 1)]
)
def test_threads_take_images_apart_where_there_are_enough_for_each(maker, images, threads, apart):
    assert threads_apart(bottleneck(maker, images), threads) == apart


@pytest.mark.usefixtures("small_caches")
def test_threads_that_take_images_apart_have_memory_of_their_own(maker):
    program = lower(bottleneck(maker, 8), AVX512, 2)
    arena = lay_out(program)
    own, result = program.own_storages(), program.steps[3].out.storage.number
    between = [step.out.storage for step in program.steps[:3]] + [program.steps[2].scratch.storage]
    assert own == {storage.number for storage in between} == set(arena.shares)
    (share,) = set(arena.shares.values())
    assert max(arena.offsets[one.number] + one.floats for one in between) <= share, "one's do not reach another's"
    assert arena.offsets[result] >= 2 * share, "behind both"


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("threads", [1, 2])
def test_durations_count_all_images(maker, threads):
    graph = bottleneck(maker, 8)
    session = Session(graph, threads=threads)
    x = {"x": np.zeros((8, 64, 24, 24), np.float32)}
    assert len(session.profile(x)) == len(session.steps()) == len(session.work)
    assert all(ns > 0 for *_, ns in session.profile(x))
    assert session.repeat(x, 1, 3, 2) > 0
    assert len(lower(graph, choose_tier(), 1).steps) == len(session.steps())
