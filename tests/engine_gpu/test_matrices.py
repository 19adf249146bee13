"""Units for products of matrices (VK_KHR_cooperative_matrix) compute what the processor does.

Debian 12's lavapipe has none: ``scripts/newest_lavapipe .venv/bin/python -m pytest tests/engine_gpu/test_matrices.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes, onnx_bytes
from msgspec.structs import replace
from onnx import helper
from test_attention import graph_of as attention_of
from test_byte_volumes import IN_BYTES, in_bytes, whole_numbers  # noqa: F401 - a fixture
from test_bytes import check
from test_methods import graph_of
from test_operators import sum_of_layers
from test_volumes import WINDOWS
from test_volumes import graph_of as volume_of

from engine_native.quantized_graphs import Quantized
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.choice.method import MATRICES, MATRICES_DIRECT, Method
from powerlab.engine.gpu.device import this_target

TOLERANCE = 2e-3
"""Of numbers stored in 16 bits, summed in 32, relative to the largest."""

TILES = {
    "one of each": (1, 1, 1, 1, 1, 1, 1),
    "wide": (2, 1, 2, 1, 3, 1, 1),
    "high": (1, 2, 1, 2, 2, 1, 2),
    "the rule's": (2, 2, 2, 2, 4, 1, 1),
    "ahead": (1, 1, 1, 2, 1, 1, 2),
    "parts": (1, 2, 2, 1, 1, 4, 2),
}
"""Subgroups across and down, matrices of each along pixels and outputs, along inputs at once; parts; steps ahead."""


KERNELS = (MATRICES, MATRICES_DIRECT)
"""Weights go through shared memory, or straight to the units."""


@pytest.fixture(autouse=True)
def target():
    """Return what this GPU is able to do."""
    found = this_target()
    if not found.matrices or not found.byte_matrices:
        pytest.skip("this GPU's driver has no cooperative matrices of 16 and 8 bits; see scripts/newest_lavapipe")
    return found


@pytest.fixture
def as_gpu(target, monkeypatch):
    """Let the rule take this device for a GPU, not for a processor that stands in for one."""
    monkeypatch.setattr(gpu_model, "this_target", lambda: replace(target, broadcasts=False))


def method(target, tiles, kernel=MATRICES, **more):
    across, down, pixels, blocks, depth, parts, ahead = TILES[tiles]
    lanes = across * target.subgroup_lanes
    sizes = {"lanes": lanes, "down": down, "pixels": pixels, "blocks": blocks, "depth": depth}
    sizes |= {"parts": parts, "ahead": ahead}
    return Method(kernel=kernel, matrix=target.matrices[0], **sizes, **more)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize(
    "window",
    [
        {"inputs": 9, "outputs": 21, "kernel": 3, "size": (9, 7), "pad": 1, "residual": True},
        {"inputs": 12, "outputs": 8, "kernel": 5, "size": (11, 12), "pad": 2, "dilation": 2},
        {"inputs": 6, "outputs": 10, "kernel": 3, "size": (8, 11), "pad": 1, "stride": 2},
        {"inputs": 32, "outputs": 48, "kernel": 1, "size": (7, 9), "group": 2},
        {"inputs": 64, "outputs": 24, "kernel": 3, "size": (5, 6), "pad": 1},
    ],
    ids=["residual", "dilated", "stride", "groups", "whole steps"],
)
def test_convolutions_of_16_bits(target, tiles, window, kernel):
    chosen = method(target, tiles, kernel)
    model = compared(graph_of(**window), tolerance=TOLERANCE, half=True, choose=lambda *_: chosen)
    assert f"{kernel}_fp16" in [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tiles", TILES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("channels", [(9, 21), (64, 24)])
def test_convolutions_over_volumes_of_16_bits(target, tiles, window, channels, kernel):
    graph = volume_of(WINDOWS[window], channels, residual=True)
    model = compared(graph, tolerance=TOLERANCE, half=True, choose=lambda *_: method(target, tiles, kernel))
    assert f"volume_{kernel}_fp16" in [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_winograd_over_volumes_by_matrices(target, kernel):
    chosen = method(target, "wide", kernel, winograd=2)
    compared(volume_of(WINDOWS["all around"], (32, 24)), tolerance=4e-3, half=True, choose=lambda *_: chosen)


@pytest.mark.parametrize("kernel", KERNELS)
def test_windows_of_one_pixel_that_leave_the_image(target, kernel):
    """As phases of a transposed convolution have that makes more pixels than its stride says."""
    weights = np.random.default_rng(2).standard_normal((5, 7, 3, 2)).astype(np.float32)
    attributes = {"strides": [2, 3], "output_padding": [1, 2]}
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)]
    graph = load_bytes(onnx_bytes(nodes, {"x": (2, 5, 5, 7)}, constants={"w": weights}))
    model = compared(graph, tolerance=TOLERANCE, half=True, choose=lambda *_: method(target, "wide", kernel))
    assert f"{kernel}_fp16" in [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_fully_connected_layer_adds(target, kernel):
    chosen = method(target, "wide", kernel)
    model = compared(sum_of_layers(), tolerance=TOLERANCE, half=True, choose=lambda *_: chosen)
    assert [kernel for kernel, _ in model.steps()].count(f"{kernel}_fp16") == 1
    assert "pointwise_fp16" not in [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("kernel", KERNELS)
def test_winograd_by_matrices(target, kernel):
    chosen = method(target, "wide", kernel, winograd=2)
    compared(graph_of(32, 24, 3, (9, 8), pad=1), tolerance=4e-3, half=True, choose=lambda *_: chosen)


@pytest.mark.usefixtures("as_gpu")
def test_bytes_are_those_of_integers():
    net = Quantized()
    x = net.conv(net.input(2, 3, 21, 19), 40, (7, 7), strides=(2, 2), pads=(3, 3, 3, 3), relu=True)
    y = net.conv(x, 24, (3, 3), pads=(1, 1, 1, 1), relu=True)
    y = net.conv(y, 40, (1, 1), residual=x, relu=True)
    y = net.conv(y, 96, (3, 3), pads=(2, 2, 2, 2), group=4, dilations=(2, 2))
    kernels = check(net, net.floats(net.conv(y, 18, (2, 2), strides=(2, 2))))
    assert kernels.count("quant_matrix_fp32") >= 4


@pytest.mark.usefixtures("as_gpu", "whole_numbers")
@pytest.mark.parametrize("window", IN_BYTES)
def test_bytes_over_volumes_are_the_processor_s(window):
    model = compared(in_bytes(volume_of(WINDOWS[window], (9, 40), residual=True)), tolerance=1e-6)
    assert "volume_quant_matrix_fp32" in [kernel for kernel, _ in model.steps()]


@pytest.mark.usefixtures("as_gpu")
@pytest.mark.parametrize(
    ("precision", "kernel", "tolerance"), [("fp16", "matrix_half", 5e-3), ("int8", "quant_matrix", 0.02)]
)
def test_a_network_takes_them_by_the_rule(precision, kernel, tolerance):
    choices = {"precision": precision, "shapes": {"x": (1, 3, 64, 64)}}
    on_gpu = Session("squeezenet", device="gpu", tuned=False, **choices)
    inputs = synthetic_inputs(on_gpu.inputs, 1, on_gpu.dtypes)
    expected = Session("squeezenet", 1, **{**choices, "precision": "fp32" if precision == "fp16" else precision}).run(
        inputs
    )
    assert any(name.startswith(kernel) for name, _ in on_gpu.steps())
    for key, value in on_gpu.run(inputs).items():
        np.testing.assert_allclose(value, expected[key], atol=tolerance * np.abs(expected[key]).max())


ATTENTIONS = {
    "one matrix": (1, 2, 16, 16, 16, 16),
    "odd": (2, 3, 9, 37, 6, 5),
    "several tiles of keys": (1, 3, 70, 150, 64, 64),
    "wide": (1, 1, 17, 70, 128, 100),
}
"""images, heads, queries, keys, numbers of a key, numbers of a value"""


@pytest.mark.parametrize(("order", "as_rows"), [(None, False), ((0, 2, 1, 3), False), (None, True)])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_takes_them(as_gpu, name, order, as_rows):
    model = compared(attention_of(ATTENTIONS[name], order=order, as_rows=as_rows), tolerance=4e-3, half=True)
    assert "attention_matrix_half_fp16" in [kernel for kernel, _ in model.steps()]


@pytest.mark.parametrize("cleaned", [False, True])
def test_attention_with_a_mask(as_gpu, cleaned):
    """Of a row without any key, where the model says so, zeros are made."""
    random = np.random.default_rng(3)
    mask = np.where(random.random((70, 150)) < 0.3, -np.inf, random.standard_normal((70, 150))).astype(np.float32)
    mask[:, 0] = 0
    if cleaned:
        mask[4] = -np.inf
    graph = attention_of(ATTENTIONS["several tiles of keys"], mask=mask, cleaned=cleaned)
    model = compared(graph, tolerance=4e-3, half=True)
    assert "attention_matrix_half_fp16" in [kernel for kernel, _ in model.steps()]
