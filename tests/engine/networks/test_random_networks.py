"""Whole networks drawn at random give what ONNX Runtime gives, on every tier this processor has."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, random_inputs, relative_error, run_ort
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers

TOLERANCE = 2e-4
"""Random networks lose more to cancellation than trained ones; a wrong channel or pixel is off by 1e-1 and more."""


class Network:
    """Grows an ONNX graph from one image; ``open`` are the tensors made so far, with their shapes."""

    def __init__(self, shape, seed):
        self.shape = shape
        self.nodes = []
        self.constants = {}
        self.open = {"x": shape}
        self.last = "x"
        self._generator = np.random.default_rng(seed)

    def constant(self, *shape, low=-1.0, high=1.0):
        name = f"c{len(self.constants)}"
        self.constants[name] = self._generator.uniform(low, high, shape).astype(np.float32)
        return name

    def add(self, operator, inputs, shape, **attributes):
        self.last = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [self.last], f"n{len(self.nodes)}", **attributes))
        self.open[self.last] = shape

    @property
    def current(self):
        return self.open[self.last]

    def bytes(self, extra):
        """Return the file; ``extra`` tensors become outputs beside the last one, so that they may not be fused away."""
        outputs = list(dict.fromkeys((self.last, *extra)))
        return onnx_bytes(self.nodes, {"x": self.shape}, outputs, constants=self.constants)


def sizes_after(size, kernel, stride, pad):
    return (size + 2 * pad - kernel) // stride + 1


def conv(draw, network):
    n, channels, h, w = network.current
    groups = draw(st.sampled_from([one for one in (1, 1, 2, 4, channels) if channels % one == 0]))
    outputs = groups * draw(st.integers(1, max(1, 36 // groups)))
    kernel = draw(st.sampled_from([one for one in (1, 3, 3, 5) if one <= min(h, w) + 2]))
    stride, pad = draw(st.sampled_from([1, 1, 2])), kernel // 2
    bound = float(np.sqrt(6 / (channels // groups * kernel**2)))
    inputs = [network.last, network.constant(outputs, channels // groups, kernel, kernel, low=-bound, high=bound)]
    if draw(st.booleans()):
        inputs.append(network.constant(outputs))
    shape = (n, outputs, sizes_after(h, kernel, stride, pad), sizes_after(w, kernel, stride, pad))
    network.add("Conv", inputs, shape, group=groups, strides=(stride, stride), pads=(pad,) * 4)


def batch_norm(_draw, network):
    channels = network.current[1]
    inputs = [network.constant(channels, low=low, high=high) for low, high in ((0.5, 2), (-1, 1), (-1, 1), (0.3, 2))]
    network.add("BatchNormalization", [network.last, *inputs], network.current)


def activation(draw, network):
    operator = draw(st.sampled_from(["Relu", "Clip"]))
    bounds = [network.constant(low=-0.5, high=0), network.constant(low=1, high=6)] if operator == "Clip" else []
    network.add(operator, [network.last, *bounds], network.current)


def pool(draw, network):
    n, channels, h, w = network.current
    kernel = draw(st.integers(1, min(3, h, w)))
    stride, pad = draw(st.integers(1, 2)), draw(st.integers(0, kernel // 2))
    operator = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    counted = {"count_include_pad": draw(st.integers(0, 1))} if operator == "AveragePool" else {}
    shape = (n, channels, sizes_after(h, kernel, stride, pad), sizes_after(w, kernel, stride, pad))
    window = {"kernel_shape": (kernel, kernel), "strides": (stride, stride), "pads": (pad,) * 4}
    network.add(operator, [network.last], shape, **window, **counted)


def residual(draw, network):
    same = [name for name, shape in network.open.items() if shape == network.current]
    network.add("Add", [network.last, draw(st.sampled_from(same))], network.current)


def concat(draw, network):
    fitting = [name for name, shape in network.open.items() if shape[2:] == network.current[2:]]
    parts = [network.last, *draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))]
    if draw(st.booleans()):
        parts.append(network.constant(network.current[0], draw(st.integers(1, 16)), *network.current[2:]))
    widths = [network.open[part][1] if part in network.open else network.constants[part].shape[1] for part in parts]
    network.add("Concat", parts, (network.current[0], sum(widths), *network.current[2:]), axis=1)


def normalise(draw, network):
    attributes = {"size": draw(st.sampled_from([1, 3, 5])), "alpha": 0.5, "beta": 0.75, "bias": 1.0}
    network.add("LRN", [network.last], network.current, **attributes)


def head(draw, network):
    n, channels, h, w = network.current
    if draw(st.booleans()):
        network.add("GlobalAveragePool", [network.last], (n, channels, 1, 1))
        h = w = 1
    features, classes = channels * h * w, draw(st.integers(1, 20))
    network.add("Flatten", [network.last], (n, features))
    bound = float(np.sqrt(3 / features))
    weights, bias = network.constant(classes, features, low=-bound, high=bound), network.constant(classes)
    network.add("Gemm", [network.last, weights, bias], (n, classes), transB=1)
    if draw(st.booleans()):
        network.add("Softmax", [network.last], (n, classes), axis=1)


LAYERS = [conv, conv, conv, batch_norm, activation, activation, pool, residual, concat, normalise]


@st.composite
def networks(draw):
    shape = (
        draw(st.integers(1, 2)),
        draw(st.sampled_from([1, 3, 8, 16, 20])),
        *draw(st.tuples(*[st.integers(4, 17)] * 2)),
    )
    network = Network(shape, draw(st.integers(0, 2**32 - 1)))
    conv(draw, network)
    for layer in draw(st.lists(st.sampled_from(LAYERS), min_size=2, max_size=8)):
        if network.current[1] <= 64:
            layer(draw, network)
    made = [name for name in network.open if name != "x"]
    extra = draw(st.lists(st.sampled_from(made), max_size=2))
    if draw(st.booleans()):
        head(draw, network)
    return network.bytes(extra)


@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
@settings(max_examples=60, deadline=None)
@given(data=networks(), threads=st.integers(1, 3))
def test_a_random_network_gives_what_onnx_runtime_gives(tier, data, threads):
    loaded = load_bytes(data)
    inputs = random_inputs(loaded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TIER_VARIABLE, tier)
        session = Session(optimise(loaded), threads=threads)
    assert session.tier == tier
    found = session.run(inputs)
    assert relative_error(found, run_ort(data, inputs)) < TOLERANCE
    session.poison()
    again = session.run(inputs)
    assert all(np.array_equal(found[name], again[name]) for name in found)


def test_a_network_wired_wrong_would_be_seen():
    """The judge itself: one channel's weights swapped in the smallest network is far above the tolerance."""
    network = Network((1, 3, 8, 8), 0)
    weights = network.constant(4, 3, 3, 3)
    network.add("Conv", ["x", weights], (1, 4, 8, 8), pads=(1, 1, 1, 1))
    right = network.bytes(())
    network.constants[weights] = network.constants[weights][:, [1, 0, 2]]
    wrong = network.bytes(())
    inputs = random_inputs(load_bytes(right))
    assert relative_error(Session(optimise(load_bytes(wrong))).run(inputs), run_ort(right, inputs)) > 100 * TOLERANCE
