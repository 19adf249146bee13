"""Counts of parameters and multiply-accumulates, against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine.ir.statistics import mac_count, operator_counts, parameter_count
from powerlab.engine.passes import optimise


def graph_of(operator, shape, constants, **attributes):
    node = helper.make_node(operator, ["x", *constants], ["y"], "n", **attributes)
    values = {name: np.full(size, 0.5, np.float32) for name, size in constants.items()}
    return load_bytes(onnx_bytes([node], {"x": shape}, constants=values))


# Operator, shape of x, shapes of constants, attributes, parameters, multiply-accumulates.
BY_HAND = {
    # 8 x 8 pixels of 16 channels, each 3 * 3 * 3 products; 16 * 27 weights.
    "conv": ("Conv", (1, 3, 8, 8), {"w": (16, 3, 3, 3)}, {"pads": (1, 1, 1, 1)}, 432, 27_648),
    # 6 x 6 pixels without padding, and 16 biases.
    "conv bias": ("Conv", (1, 3, 8, 8), {"w": (16, 3, 3, 3), "b": (16,)}, {}, 448, 15_552),
    # 4 x 4 pixels at stride 2, two images.
    "conv stride": (
        *("Conv", (2, 3, 8, 8), {"w": (16, 3, 3, 3)}),
        *({"pads": (1, 1, 1, 1), "strides": (2, 2)}, 432, 13_824),
    ),
    # Each output sees the 2 channels of its group: 4 x 4 pixels * 8 channels * 2.
    "conv groups": ("Conv", (1, 4, 4, 4), {"w": (8, 2, 1, 1)}, {"group": 2}, 16, 256),
    # 4 x 4 pixels * 4 channels * 9 taps.
    "conv depthwise": ("Conv", (1, 4, 4, 4), {"w": (4, 1, 3, 3)}, {"group": 4, "pads": (1, 1, 1, 1)}, 36, 576),
    # Dilation spreads taps and adds none: 4 x 4 pixels * 2 * 9.
    "conv dilation": ("Conv", (1, 1, 8, 8), {"w": (2, 1, 3, 3)}, {"dilations": (2, 2)}, 18, 288),
    "gemm": ("Gemm", (3, 10), {"w": (7, 10), "b": (7,)}, {"transB": 1}, 77, 210),
    "gemm untransposed": ("Gemm", (3, 10), {"w": (10, 7)}, {}, 70, 210),
    "matmul": ("MatMul", (3, 10), {"w": (10, 7)}, {}, 70, 210),
    # A batch norm learns a scale and a shift a channel; its mean and variance are not counted.
    "norm": (
        *("BatchNormalization", (1, 4, 2, 2), {"g": (4,), "b": (4,), "m": (4,), "v": (4,)}),
        *({}, 8, 0),
    ),
    "relu": ("Relu", (1, 4, 8, 8), {}, {}, 0, 0),
    "pool": ("MaxPool", (1, 4, 8, 8), {}, {"kernel_shape": (2, 2)}, 0, 0),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_counts_are_those_worked_out_by_hand(case):
    operator, shape, constants, attributes, parameters, macs = BY_HAND[case]
    graph = graph_of(operator, shape, constants, **attributes)
    assert (parameter_count(graph), mac_count(graph)) == (parameters, macs)
    assert mac_count(optimise(graph)) == macs


@settings(deadline=None, max_examples=40)
@given(
    batch=st.integers(1, 4),
    channels=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_a_convolution_has_as_many_products_as_loops_would_make(batch, channels, size, kernel):
    inputs, outputs = channels
    graph = graph_of("Conv", (batch, inputs, *size), {"w": (outputs, inputs, *kernel)})
    counted = 0
    for _pixel in np.ndindex(size[0] - kernel[0] + 1, size[1] - kernel[1] + 1):
        counted += batch * outputs * inputs * kernel[0] * kernel[1]
    assert mac_count(graph) == counted


def test_weights_that_two_nodes_share_are_counted_once_and_their_work_twice():
    nodes = [helper.make_node("Conv", [x, "w"], [y], pads=(1, 1, 1, 1)) for x, y in (("x", "a"), ("a", "y"))]
    constants = {"w": np.ones((2, 2, 3, 3), np.float32)}
    graph = load_bytes(onnx_bytes(nodes, {"x": (1, 2, 5, 5)}, constants=constants))
    assert parameter_count(graph) == 36
    assert mac_count(graph) == 2 * 25 * 36
    assert operator_counts(graph) == {"Conv": 2}


def test_work_grows_with_the_batch_and_parameters_do_not():
    one, eight = (graph_of("Conv", (n, 3, 8, 8), {"w": (4, 3, 3, 3)}) for n in (1, 8))
    assert mac_count(eight) == 8 * mac_count(one)
    assert parameter_count(eight) == parameter_count(one)


def test_operators_are_listed_most_frequent_first():
    wires = [("Softmax", "x", "a"), ("Relu", "a", "b"), ("Relu", "b", "y")]
    nodes = [helper.make_node(operator, [x], [y]) for operator, x, y in wires]
    graph = load_bytes(onnx_bytes(nodes, {"x": (1, 4)}))
    assert list(operator_counts(graph).items()) == [("Relu", 2), ("Softmax", 1)]
