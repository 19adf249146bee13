"""Networks of images drawn at random: convolutions, norms, pools, residuals, concatenations, and perhaps a head."""

from __future__ import annotations

import numpy as np
from engine_models import onnx_bytes
from hypothesis import strategies as st
from onnx import helper


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


_LAYERS = [conv, conv, conv, batch_norm, activation, activation, pool, residual, concat, normalise]


@st.composite
def random_networks(draw):
    """Return an ONNX file of an image network with the input ``x``."""
    shape = (
        draw(st.integers(1, 2)),
        draw(st.sampled_from([1, 3, 8, 16, 20])),
        *draw(st.tuples(*[st.integers(4, 17)] * 2)),
    )
    network = Network(shape, draw(st.integers(0, 2**32 - 1)))
    conv(draw, network)
    for layer in draw(st.lists(st.sampled_from(_LAYERS), min_size=2, max_size=8)):
        if network.current[1] <= 64:
            layer(draw, network)
    made = [name for name in network.open if name != "x"]
    extra = draw(st.lists(st.sampled_from(made), max_size=2))
    if draw(st.booleans()):
        head(draw, network)
    return network.bytes(extra)
