"""Gradients of single layers on the GPU: the judge is the processor, whose own are held against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes
from general_models import model_bytes, node_bytes
from gradient_checks import gradient_graph
from msgspec.structs import replace
from onnx import helper

from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.device import this_target
from powerlab.engine.gpu.lowering.training.sums import parts_of
from powerlab.engine.gpu.target import Target

IMAGE = (2, 8, 9, 7)

CONVOLUTIONS = {
    "plain, with bias": ("Conv", IMAGE, (12, 8, 3, 3), {"pads": [1, 1, 1, 1], "bias": True}),
    "strides, channels that fill no blocks": ("Conv", (3, 3, 9, 7), (5, 3, 3, 2), {"strides": [2, 3]}),
    "dilated, uneven pads": ("Conv", IMAGE, (4, 8, 3, 3), {"dilations": [2, 2], "pads": [2, 0, 1, 3]}),
    "points, a stride apart": ("Conv", IMAGE, (8, 8, 1, 1), {"strides": [2, 2]}),
    "many channels": ("Conv", (1, 72, 3, 3), (68, 72, 1, 1), {}),
    "groups of whole blocks": ("Conv", IMAGE, (16, 4, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "groups that fill no blocks": ("Conv", (2, 6, 5, 5), (9, 2, 3, 3), {"group": 3, "bias": True}),
    "each channel": ("Conv", (2, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1], "bias": True}),
    "each channel, a stride apart": ("Conv", IMAGE, (8, 1, 3, 3), {"group": 8, "strides": [2, 2]}),
    "a row of pixels": ("Conv", (2, 5, 11), (6, 5, 3), {"pads": [1, 1]}),
    "transposed": ("ConvTranspose", (2, 6, 4, 5), (6, 5, 3, 3), {"strides": [2, 2], "bias": True}),
    "transposed, pixels without taps": ("ConvTranspose", (2, 4, 3, 3), (4, 4, 1, 1), {"strides": [2, 2], "bias": True}),
    "transposed, in groups": ("ConvTranspose", (1, 8, 4, 4), (8, 4, 2, 2), {"strides": [2, 2], "group": 2}),
}

LAYERS = {
    "largest": ("MaxPool", IMAGE, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "largest, apart": ("MaxPool", IMAGE, {"kernel_shape": [2, 2], "strides": [3, 3]}),
    "average": ("AveragePool", IMAGE, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    "average with pads": (
        "AveragePool",
        (1, 6, 6, 6),
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
    ),
    "average of all": ("GlobalAveragePool", (2, 6, 5, 4), {}),
    "LRN": ("LRN", (2, 10, 3, 4), {"size": 5, "alpha": 0.5, "beta": 0.75, "bias": 1.5}),
    "LRN, even": ("LRN", (1, 6, 2, 2), {"size": 4, "alpha": 0.5}),
    "rising": ("LeakyRelu", IMAGE, {"alpha": 0.2}),
    "sigmoid": ("Sigmoid", (3, 7), {}),
    "hard swish": ("HardSwish", (3, 7), {}),
}


def gradients_of(model, wanted):
    """Hold the gradients of a model on the GPU against the processor's."""
    return compared(gradient_graph(load_bytes(model), None, wanted))


def random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def as_gpu(monkeypatch):
    """Let models take this device for a GPU of many cores, which has other rules than a processor."""
    found = replace(this_target(), broadcasts=False, cores=132)
    monkeypatch.setattr(gpu_model, "this_target", lambda: found)


@pytest.mark.usefixtures("as_gpu")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions_as_on_a_gpu(name):
    test_gradients_of_convolutions(name)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name):
    operator, image, weights, attributes = CONVOLUTIONS[name]
    attributes = dict(attributes)
    inputs = {"x": random(*image), "w": random(*weights)}
    if attributes.pop("bias", False):
        outputs = weights[1] * attributes.get("group", 1) if operator == "ConvTranspose" else weights[0]
        inputs["b"] = random(outputs)
    gradients_of(node_bytes(operator, inputs, **attributes), list(inputs))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers(name):
    operator, shape, attributes = LAYERS[name]
    gradients_of(node_bytes(operator, {"x": random(*shape)}, **attributes), ["x"])


@pytest.mark.usefixtures("as_gpu")
def test_sums_over_many_pixels_are_cut_into_parts():
    target = Target(largest_bytes=1 << 27, cores=8)
    assert parts_of(target, 4, 2 * 40 * 40) == 8
    inputs = {"x": random(2, 4, 40, 40), "w": random(4, 4, 3, 3), "b": random(4)}
    gradients_of(node_bytes("Conv", inputs), ["w", "b"])


def test_gradients_of_a_clamp_and_of_a_sum_with_broadcasting():
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    inputs = {"x": random(2, 5, 4, 4), "b": random(5, 1, 1)}
    constants = {"low": np.float32(-0.5), "high": np.float32(0.7)}
    gradients_of(model_bytes(nodes, inputs, constants=constants), ["x", "b"])


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_what_is_picked_at_known_places_are_added_up(axis):
    constants = {"places": np.array([[1, 3], [1, -2]])}
    data = node_bytes("Gather", {"x": random(5, 6, 2)}, constants=constants, axis=axis)
    gradients_of(data, ["x"])


@pytest.mark.parametrize("shape", [(4, 6, 5, 3), (6, 7)])
def test_gradients_of_a_batch_norm(shape):
    channels = shape[1]
    inputs = {"x": 3 + random(*shape), "s": random(channels), "b": random(channels)}
    constants = {"m": np.zeros(channels, np.float32), "v": np.ones(channels, np.float32)}
    data = node_bytes("BatchNormalization", inputs, constants=constants)
    gradients_of(data, ["x", "s", "b"])
