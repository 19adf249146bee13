"""Convolutions whose weights are computed, as while a network trains: matrix products of their windows."""

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


CASES = [
    ((2, 4, 5, 6), (3, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 3, 13, 12), (5, 3, 3, 2), {"pads": [1, 0, 2, 1]}),
    ((1, 6, 17, 19), (8, 3, 3, 3), {"group": 2, "strides": [2, 1]}),
    ((3, 6, 9, 9), (4, 3, 2, 3), {"group": 2, "dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((2, 4, 8, 8), (6, 4, 1, 1), {"strides": [2, 2]}),
    ((2, 4, 20, 20), (6, 4, 1, 1), {}),
]


def kernels(data):
    return {kernel for kernel, _ in Session(optimise(load_bytes(data)), threads=1).steps()}


@pytest.mark.parametrize(("image", "weight", "attributes"), CASES)
@pytest.mark.parametrize("biased", [False, True])
def test_a_convolution_is_a_product_of_its_windows(image, weight, attributes, biased):
    inputs = {"x": numbers(*image), "w": numbers(*weight), **({"b": numbers(weight[0])} if biased else {})}
    data = node_bytes("Conv", inputs, **attributes)
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)
    assert not any(kernel.startswith("conv_") for kernel in kernels(data))


@pytest.mark.parametrize(
    ("image", "weight", "attributes"),
    [
        ((2, 4, 5, 6), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 4, 9, 9), (4, 3, 3, 2), {"strides": [2, 3], "output_padding": [1, 2]}),
        ((1, 6, 5, 4), (6, 4, 3, 3), {"group": 2, "strides": [2, 2], "pads": [1, 0, 1, 2], "dilations": [1, 2]}),
    ],
)
def test_a_transposed_convolution_is_one_of_the_spread_image(image, weight, attributes):
    inputs = {"x": numbers(*image), "w": numbers(*weight)}
    data = node_bytes("ConvTranspose", inputs, **attributes)
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)
    assert not any(kernel.startswith("conv_") for kernel in kernels(data))


@pytest.mark.parametrize(
    ("operator", "image", "weight", "attributes"),
    [
        ("Conv", (2, 4, 6, 6), (4, 1, 3, 3), {"group": 4}),
        ("ConvTranspose", (1, 2, 5, 5), (2, 2, 1, 1), {"pads": [1, 1, 1, 1]}),
    ],
)
def test_what_is_no_gain_as_a_product_keeps_the_plain_kernel(operator, image, weight, attributes):
    inputs = {"x": numbers(*image), "w": numbers(*weight)}
    data = node_bytes(operator, inputs, **attributes)
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)
    assert any(kernel.startswith("conv_") for kernel in kernels(data))
