"""Convolutions whose weights are computed, as while a network trains: on the kernels of those that are known."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, node_bytes

from powerlab.engine import Session
from powerlab.engine.passes import optimise

GENERATOR = np.random.default_rng(8)


def numbers(*shape):
    return GENERATOR.standard_normal(shape, dtype=np.float32)


def check(operator, image, weight, attributes, *, bias=0):
    """Hold the result against ONNX Runtime's, the same bits on one thread and on three, by a kernel in blocks."""
    inputs = {"x": numbers(*image), "w": numbers(*weight), **({"b": numbers(bias)} if bias else {})}
    data = node_bytes(operator, inputs, **attributes)
    graph = optimise(load_bytes(data))
    one, three = (Session(graph, threads=threads) for threads in (1, 3))
    kernels = {kernel for kernel, _ in one.steps()}
    by_winograd = any("conv_winograd" in kernel for kernel in kernels)  # whose sums lose a digit
    check_by_ort(data, inputs, rtol=1e-4, atol=5e-4 if by_winograd else 5e-5)
    np.testing.assert_array_equal(one.run(inputs)["y"], three.run(inputs)["y"])
    assert any(kernel.startswith(("conv_direct", "conv_depthwise", "conv_winograd")) for kernel in kernels)
    assert not any(kernel.startswith(("conv_planes", "conv_transpose_strided")) for kernel in kernels)


@pytest.mark.parametrize(
    ("image", "weight", "attributes"),
    [
        ((2, 4, 5, 6), (3, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 3, 13, 12), (5, 3, 3, 2), {"pads": [1, 0, 2, 1]}),
        ((1, 6, 17, 19), (8, 3, 3, 3), {"group": 2, "strides": [2, 1]}),
        ((3, 6, 9, 9), (4, 3, 2, 3), {"group": 2, "dilations": [2, 3], "pads": [2, 3, 2, 3]}),
        ((2, 4, 8, 8), (6, 4, 1, 1), {"strides": [2, 2]}),
        ((2, 40, 7, 7), (70, 40, 1, 1), {}),
        ((4, 40, 15, 13), (70, 40, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 64, 14, 14), (64, 32, 3, 3), {"group": 2, "pads": [0, 1, 1, 0], "dilations": [2, 2]}),
        ((1, 80, 6, 6), (80, 8, 3, 3), {"group": 10, "pads": [1, 1, 1, 1]}),
        ((2, 20, 6, 6), (20, 1, 3, 3), {"group": 20, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((2, 5, 11), (7, 5, 3), {"pads": [1, 1], "strides": [2]}),
    ],
)
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions(image, weight, attributes, biased):
    check("Conv", image, weight, attributes, bias=weight[0] if biased else 0)


@pytest.mark.parametrize(
    ("image", "weight", "attributes"),
    [
        ((2, 4, 5, 6), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 4, 9, 9), (4, 3, 3, 2), {"strides": [2, 3], "output_padding": [1, 2]}),
        ((1, 6, 5, 4), (6, 4, 3, 3), {"group": 2, "strides": [2, 2], "pads": [1, 0, 1, 2], "dilations": [1, 2]}),
        ((1, 2, 5, 5), (2, 2, 1, 1), {"pads": [1, 1, 1, 1]}),
        ((2, 24, 4, 4), (24, 40, 1, 1), {"strides": [2, 2], "output_padding": [1, 1]}),
        ((2, 20, 4, 4), (20, 1, 3, 3), {"group": 20, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 20, 6, 5), (20, 1, 5, 5), {"group": 20, "pads": [2, 2, 2, 2]}),
        ((4, 70, 15, 13), (70, 40, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 64, 14, 14), (64, 32, 3, 3), {"group": 2, "pads": [2, 1, 1, 2], "dilations": [2, 2]}),
        ((2, 40, 9, 9), (40, 40, 3, 3), {"pads": [3, 3, 3, 3]}),
        ((2, 5, 6), (5, 7, 3), {"strides": [2]}),
    ],
)
@pytest.mark.parametrize("biased", [False, True])
def test_transposed_convolutions(image, weight, attributes, biased):
    outputs = weight[1] * attributes.get("group", 1)
    check("ConvTranspose", image, weight, attributes, bias=outputs if biased else 0)
