"""Every way to compute a convolution gives what the processor gives, for any sizes."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes, onnx_bytes
from msgspec.structs import replace
from onnx import helper

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.matrices import matrix_methods
from powerlab.engine.gpu.choice.method import (
    BYTES_MATRICES,
    CACHED,
    MATRICES,
    MATRICES_DIRECT,
    SHARED,
    SHARED_HALF,
    Method,
    Numbers,
)
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.choice.shared import fits
from powerlab.engine.gpu.lowering.packing import by_matrices
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.gpu.target import Target
from powerlab.engine.passes import optimise

RANDOM = np.random.default_rng(5)
TILES = [
    Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=4, depth=2),
    Method(kernel=SHARED, lanes=16, pixels=1, blocks=1, down=2, depth=3),
    Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=4, depth=2, parts=5),
    Method(kernel=SHARED, lanes=8, pixels=2, blocks=2, down=4, depth=1, ahead=2),
]
METHODS = {
    "tiles": TILES[0],
    "odd tiles": TILES[1],
    "parts": TILES[2],
    "two steps ahead": TILES[3],
    "winograd 2": Method(lanes=16, pixels=2, blocks=2, winograd=2),
    "winograd 4": Method(lanes=32, pixels=1, blocks=1, winograd=4),
    "winograd of tiles": Method(kernel=SHARED, lanes=8, pixels=2, blocks=1, down=2, depth=4, winograd=4),
}
GPU = Target(largest_bytes=1 << 30, shared_bytes=32768, group_size=1024, half_arithmetic=True)


def graph_of(inputs, outputs, kernel, size, *, stride=1, pad=0, dilation=1, group=1, residual=False):
    weights = RANDOM.standard_normal((outputs, inputs // group, kernel, kernel)).astype(np.float32)
    constants = {"w": weights, "b": RANDOM.standard_normal(outputs).astype(np.float32)}
    attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "dilations": [dilation] * 2, "group": group}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes)]
    nodes += [helper.make_node("Add", ["c", "s"], ["a"])] if residual else []
    nodes += [helper.make_node("Relu", ["a" if residual else "c"], ["y"])]
    made = [(side + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for side in size]
    shapes = {"x": (2, inputs, *size), **({"s": (2, outputs, *made)} if residual else {})}
    return load_bytes(onnx_bytes(nodes, shapes, constants=constants))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("residual", [False, True])
def test_three_by_three(name, residual):
    graph = graph_of(9, 21, 3, (9, 7), pad=1, residual=residual)
    model = compared(graph, choose=lambda *_: METHODS[name])
    kernels = [kernel for kernel, _ in model.steps()]
    assert ("winograd_in_fp32" in kernels) == bool(METHODS[name].winograd)
    assert f"{METHODS[name].kernel}_fp32" in kernels


@pytest.mark.parametrize("name", METHODS)
def test_what_is_no_number_stays_so_where_a_convolution_clamps(name):
    model = GpuModel(optimise(graph_of(9, 21, 3, (9, 7), pad=1), for_cores=False), choose=lambda *_: METHODS[name])
    x = RANDOM.standard_normal((2, 9, 9, 7)).astype(np.float32)
    x[1] = np.nan
    found = model.run({"x": x})["y"]
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize(
    "window",
    [
        {"inputs": 5, "outputs": 17, "kernel": 1, "size": (7, 9)},
        {"inputs": 12, "outputs": 8, "kernel": 5, "size": (11, 12), "pad": 2, "dilation": 2},
        {"inputs": 6, "outputs": 10, "kernel": 3, "size": (8, 11), "pad": 1, "stride": 2},
        {"inputs": 8, "outputs": 16, "kernel": 3, "size": (6, 7), "pad": 1, "group": 2},
        {"inputs": 24, "outputs": 12, "kernel": 3, "size": (6, 5), "pad": 1},
    ],
)
def test_tiles_in_shared_memory(tiles, window):
    compared(graph_of(**window), choose=lambda *_: tiles)


@pytest.mark.parametrize(
    "method",
    [
        Method(kernel=SHARED, lanes=8, pixels=4, blocks=2, down=4, depth=2),
        Method(kernel=SHARED_HALF, lanes=8, pixels=4, blocks=2, down=4, depth=2),
        Method(kernel=SHARED_HALF, lanes=8, pixels=2, blocks=2, down=4, depth=4, winograd=2),
    ],
)
def test_in_16_bits(method):
    compared(graph_of(32, 24, 3, (9, 8), pad=1), tolerance=4e-3, half=True, choose=lambda *_: method)


SHAPE = ConvShape(images=1, inputs=64, outputs=64, kernel=(3, 3), pads=(1, 1), in_size=(56, 56), size=(56, 56))


WINOGRAD = {Numbers.FP32: {0, 2, 4}, Numbers.FP16: {0, 2}, Numbers.INT8: {0}}


@pytest.mark.parametrize("numbers", Numbers)
def test_candidates_fit_the_device_and_the_rule_comes_first(numbers):
    found = candidates(SHAPE, GPU, numbers)
    assert found[0] == by_rule(GPU)(SHAPE, numbers)
    assert len(set(found)) == len(found) > 1
    assert all(fits(method, GPU) for method in found)
    assert any(method.kernel == SHARED_HALF for method in found) == (numbers is Numbers.FP16)
    assert {method.winograd for method in found} == WINOGRAD[numbers]


def test_a_small_device_is_asked_for_no_more_than_it_has():
    small = Target(largest_bytes=1 << 27, shared_bytes=16384, group_size=128)
    found = [method for numbers in (Numbers.FP16, Numbers.INT8) for method in candidates(SHAPE, small, numbers)]
    assert all(method.lanes * method.down <= 128 for method in found)
    assert SHARED_HALF not in {method.kernel for method in found}


MATRICES_OF = {"NVIDIA's": (32, ((16, 16, 16), (16, 8, 16), (16, 8, 8))), "Intel's": (16, ((8, 16, 16),))}


@pytest.mark.parametrize("maker", MATRICES_OF)
def test_a_gpu_with_units_for_matrices_is_asked_for_what_it_lists(maker):
    lanes, sizes = MATRICES_OF[maker]
    target = replace(GPU, subgroup_lanes=lanes, matrices=sizes, byte_matrices=sizes)
    for numbers, kernel in ((Numbers.FP16, MATRICES), (Numbers.INT8, BYTES_MATRICES)):
        found = [method for method in candidates(SHAPE, target, numbers) if method.kernel == kernel]
        assert {method.matrix for method in found} == set(sizes)
        assert by_rule(target)(SHAPE, numbers).kernel == kernel
        assert all(method.lanes % lanes == 0 and method.lanes * method.down <= GPU.group_size for method in found)
    assert by_rule(target)(SHAPE, Numbers.FP32).kernel == SHARED
    assert by_rule(replace(target, broadcasts=True))(SHAPE, Numbers.FP16).kernel == CACHED


def test_matrices_need_their_shared_memory():
    wide = replace(GPU, subgroup_lanes=32, matrices=((16, 16, 16),))
    small = replace(wide, shared_bytes=16384)
    assert 0 < len(matrix_methods(SHAPE, small, Numbers.FP16)) < len(matrix_methods(SHAPE, wide, Numbers.FP16))


def test_weights_that_skip_shared_memory_are_tried_and_chosen_by_no_rule():
    for sizes, there in ((((16, 16, 16), (16, 8, 8)), True), (((16, 16, 4),), False), ((), False)):
        target = replace(GPU, subgroup_lanes=32, matrices=sizes, byte_matrices=sizes)
        tried = {numbers: {one.kernel for one in candidates(SHAPE, target, numbers)} for numbers in Numbers}
        assert [MATRICES_DIRECT in tried[numbers] for numbers in Numbers] == [False, there, False]
        assert by_rule(target)(SHAPE, Numbers.FP16).kernel != MATRICES_DIRECT


def test_matrices_of_weights_lie_one_after_another_column_by_column():
    groups, outputs, inputs, (n, k) = 2, 21, 6, (8, 16)
    weights = RANDOM.standard_normal((groups * outputs, inputs, 3, 2)).astype(np.float32)
    packed = by_matrices(weights, groups, tile=2 * n, step=2 * k, size=(n, k)).reshape(groups, 2, 4, 2, n, k)
    window = np.zeros((groups, 32, 6, 8), np.float32)  # taps before channels, which fill whole blocks
    window[:, :outputs, :, :inputs] = weights.reshape(groups, outputs, inputs, 6).swapaxes(2, 3)
    window = np.pad(window.reshape(groups, 32, 48), ((0, 0), (0, 0), (0, 16)))
    for group, tile, step, block in np.ndindex(packed.shape[:4]):
        first = (2 * tile + block) * n
        np.testing.assert_array_equal(
            packed[group, tile, step, block], window[group, first : first + n, step * k : (step + 1) * k]
        )
