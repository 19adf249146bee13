"""Transposed convolutions on a GPU, by the phases of their strides."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes, onnx_bytes
from onnx import helper

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("channels", "group", "window"),
    [
        ((6, 10), 1, {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((5, 7), 1, {"kernel_shape": [3, 2], "strides": [2, 3], "output_padding": [1, 2]}),
        ((8, 16), 2, {"kernel_shape": [3, 3], "strides": [2, 1], "dilations": [2, 1], "pads": [2, 1, 0, 1]}),
        ((9, 9), 9, {"kernel_shape": [3, 3], "strides": [3, 2]}),
        ((4, 4), 1, {"kernel_shape": [1, 1], "strides": [2, 2]}),
    ],
    ids=["doubled", "padded after", "groups", "each channel", "pixels without taps"],
)
def test_transposed_convolutions(half, channels, group, window):
    inputs, outputs = channels
    weights = RANDOM.standard_normal((inputs, outputs // group, *window["kernel_shape"])).astype(np.float32)
    constants = {"w": weights, "b": RANDOM.standard_normal(outputs).astype(np.float32)}
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], group=group, **window),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = load_bytes(onnx_bytes(nodes, {"x": (2, inputs, 5, 7)}, constants=constants))
    compared(graph, half=half, tolerance=4e-3 if half else 2e-5)
