"""Every candidate of every algorithm computes the convolution, and those of one algorithm the same bits."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine_native.graphs import NO_CLAMP, GraphMaker
from engine_native.numpy_reference import conv
from powerlab.engine.codegen import lower
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.conv_shape import conv_shape, padded_tensors
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.choice import Choice
from powerlab.engine.runtime.plan import build_plan, thread_pool
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import available_tiers, choose_tier

PLAIN = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1}


def computed(graph: Graph, choice: Choice, threads: int, arrays: list[np.ndarray]) -> np.ndarray:
    tier = choose_tier()
    program = lower(graph, tier, threads, lambda _: choice)
    plan = build_plan(program, tier, thread_pool(threads, 0))
    out = np.empty(graph.outputs[0].shape, np.float32)
    plan.poison()
    plan.run([*arrays, *program.hidden_inputs], [out])
    return out


def check_all_candidates(
    threads: int, x: np.ndarray, weights: np.ndarray, residual: np.ndarray | None, window: Mapping[str, object]
) -> None:
    """Compute one convolution in every way there is."""
    generator = np.random.default_rng(0)
    bias = generator.standard_normal(weights.shape[0], dtype=np.float32)
    window = {**PLAIN, **window}
    expected = conv(x, weights, bias, residual, clamp=NO_CLAMP, **window)
    maker, arrays = GraphMaker(), [x]
    source, added = maker.input("x", *x.shape), ""
    if residual is not None:
        added = maker.input("r", *residual.shape)
        arrays.append(residual)
    graph = maker.graph(maker.conv(source, weights, bias, added, **window))
    shape = conv_shape(graph, graph.nodes[0], padded_tensors(graph))
    machine = this_machine(choose_tier(), threads)
    usable = [algorithm for algorithm in ALGORITHMS.values() if algorithm.applies(shape, machine.tier)]
    assert usable
    for algorithm in usable:
        results = [computed(graph, choice, threads, arrays) for choice in algorithm.candidates(shape, machine)]
        for result in results:
            assert np.abs(result - expected).max() <= 1e-4 * (np.abs(expected).max() + 1), algorithm.name
            np.testing.assert_array_equal(result, results[0])
        alone = algorithm.candidates(shape, replace(machine, threads=1))[0]
        np.testing.assert_array_equal(computed(graph, alone, 1, arrays), results[0])


sizes = st.tuples(st.integers(3, 18), st.integers(3, 18))


@settings(deadline=None, max_examples=80)
@given(
    images=st.integers(1, 3),
    channels=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    size=sizes,
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padded=st.booleans(),
    with_residual=st.booleans(),
    threads=st.integers(1, 3),
)
def test_any_convolution(*, images, channels, size, kernel, strides, padded, with_residual, threads):
    generator = np.random.default_rng(1)
    inputs, outputs = channels
    x = generator.standard_normal((images, inputs, *size), dtype=np.float32)
    weights = generator.standard_normal((outputs, inputs, *kernel), dtype=np.float32)
    window = {"strides": strides, "pads": (kernel[0] // 2, kernel[1] // 2) * 2 if padded else (0, 0, 0, 0)}
    residual = None
    if with_residual:
        shape = conv(x, weights, clamp=NO_CLAMP, **{**PLAIN, **window}).shape
        residual = generator.standard_normal(shape, dtype=np.float32)
    check_all_candidates(threads, x, weights, residual, window)


@pytest.mark.campaign
@settings(deadline=None, max_examples=60)
@given(
    images=st.integers(1, 2),
    channels=st.tuples(st.integers(4, 100), st.integers(4, 70)),
    size=sizes,
    threads=st.integers(1, 3),
)
def test_three_by_three_convolutions(*, images, channels, size, threads):
    generator = np.random.default_rng(2)
    x = generator.standard_normal((images, channels[0], *size), dtype=np.float32)
    weights = generator.standard_normal((channels[1], channels[0], 3, 3), dtype=np.float32)
    check_all_candidates(threads, x, weights, None, {"pads": (1, 1, 1, 1)})


@settings(deadline=None, max_examples=40)
@given(
    groups=st.integers(2, 40),
    channels=st.sampled_from([(1, 1), (1, 3), (2, 1), (2, 3), (5, 1), (5, 3), (4, 4), (8, 8)]),
    size=sizes,
    strides=st.sampled_from([(1, 1), (2, 2)]),
    threads=st.integers(1, 3),
)
def test_convolutions_in_groups(*, groups, channels, size, strides, threads):
    generator = np.random.default_rng(3)
    inputs, outputs = channels
    x = generator.standard_normal((1, groups * inputs, *size), dtype=np.float32)
    weights = generator.standard_normal((groups * outputs, inputs, 3, 3), dtype=np.float32)
    check_all_candidates(threads, x, weights, None, {"pads": (1, 1, 1, 1), "group": groups, "strides": strides})


@pytest.mark.campaign
@settings(deadline=None, max_examples=40)
@given(
    groups=st.integers(1, 3),
    blocks=st.tuples(st.integers(1, 2), st.integers(1, 5)),
    kernel=st.sampled_from([3, 5]),
    size=sizes,
    images=st.integers(1, 2),
    threads=st.integers(1, 4),
)
def test_groups_of_whole_blocks(*, groups, blocks, kernel, size, images, threads):
    generator = np.random.default_rng(4)
    inputs, outputs = (count * choose_tier().vector_width for count in blocks)
    x = generator.standard_normal((images, groups * inputs, *size), dtype=np.float32)
    weights = generator.standard_normal((groups * outputs, inputs, kernel, kernel), dtype=np.float32)
    check_all_candidates(threads, x, weights, None, {"pads": (kernel // 2,) * 4, "group": groups})


@settings(deadline=None, max_examples=40)
@given(
    inputs=st.integers(1, 5),
    outputs=st.integers(1, 70),
    stride=st.sampled_from([2, 4]),
    kernel=st.tuples(st.integers(5, 12), st.integers(5, 12)),
    extra=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    pads=st.tuples(*[st.integers(0, 5)] * 4),
    with_residual=st.booleans(),
    threads=st.integers(1, 3),
)
def test_large_kernels_and_strides(*, inputs, outputs, stride, kernel, extra, pads, with_residual, threads):
    generator = np.random.default_rng(5)
    size = (kernel[0] + extra[0], kernel[1] + extra[1])
    x = generator.standard_normal((2, inputs, *size), dtype=np.float32)
    weights = generator.standard_normal((outputs, inputs, *kernel), dtype=np.float32)
    window = {"strides": (stride, stride), "pads": pads}
    residual = None
    if with_residual:
        shape = conv(x, weights, clamp=NO_CLAMP, **{**PLAIN, **window}).shape
        residual = generator.standard_normal(shape, dtype=np.float32)
    check_all_candidates(threads, x, weights, residual, window)


def test_the_first_convolution_of_alexnet_is_folded():
    maker = GraphMaker()
    weights = np.random.default_rng(6).standard_normal((32, 3, 11, 11), dtype=np.float32)
    graph = maker.graph(maker.conv(maker.input("x", 1, 3, 63, 64), weights, strides=(4, 4), pads=(2,) * 4))
    shape = conv_shape(graph, graph.nodes[0], padded_tensors(graph))
    for tier in available_tiers():
        assert ALGORITHMS["folded_winograd4"].applies(shape, tier)
        assert not ALGORITHMS["folded_winograd4"].applies(replace(shape, from_outside=False), tier)
        assert not ALGORITHMS["folded_winograd4"].applies(replace(shape, strides=(4, 2)), tier)
        assert not ALGORITHMS["folded_winograd4"].applies(replace(shape, kernel=(13, 11)), tier)
        families = [step.family for step in lower(graph, tier, 1).steps]
        assert families[:2] == ["space_to_depth", "conv_winograd4"]
