"""A builder of ONNX-like graphs with seeded weights, in which the zoo's networks read like their papers' tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import LARGE_ELEMENTS, Recipe, Value
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer

INPUT_NAME = "x"
OUTPUT_NAME = "y"
RELU_GAIN = 2.0
"""He et al., https://arxiv.org/abs/1502.01852: a rectifier halves the second moment, so weights make up for it."""

LINEAR_GAIN = 1.0


def _uniform(random: np.random.Generator, shape: tuple[int, ...], low: float, high: float) -> Array:
    values = random.random(shape, dtype=np.float32)
    values *= np.float32(high - low)
    values += np.float32(low)
    return values


def _generator(state: Any) -> np.random.Generator:
    """Return a generator in the state of another."""
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)


def _skip(random: np.random.Generator, floats: int) -> None:
    """Put a generator where drawing ``floats`` numbers in float32 would leave it: each takes half a 64-bit number."""
    bits: Any = random.bit_generator
    halves = floats - bits.state["has_uint32"]
    bits.advance(halves // 2)
    if halves % 2:
        random.random(dtype=np.float32)


class Builder:
    """Collects nodes and weights; each method adds one node and returns the name of its output.

    Weights are uniform with variance gain / fan-in and batch-norm statistics are near the ones such weights give, so
    that activations neither vanish nor blow up, and the same seed gives the same network on every machine.
    """

    def __init__(self, name: str, seed: int, features: int = 3) -> None:
        self._name = name
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._nodes: list[Node] = []
        self._constants: dict[str, Value] = {}
        self._channels = {INPUT_NAME: features}

    def node(self, op_type: str, inputs: tuple[str, ...], channels: int, **attributes: object) -> str:
        """Add any node; ``channels`` is the size of its output's axis of features."""
        name = f"{op_type.lower()}_{len(self._nodes)}"
        self._nodes.append(Node(op_type, name, inputs, (name,), attributes))
        self._channels[name] = channels
        return name

    def constant(self, label: str, value: Value) -> str:
        """Add a weight to the next node."""
        name = f"{label}_{len(self._nodes)}"
        self._constants[name] = value
        return name

    def _uniform(self, shape: tuple[int, ...], low: float, high: float) -> Value:
        if math.prod(shape) < LARGE_ELEMENTS:
            return _uniform(self._random, shape, low, high)
        start = self._random.bit_generator.state
        _skip(self._random, math.prod(shape))
        return Recipe(
            shape=shape,
            dtype=np.dtype(np.float32),
            make=lambda: _uniform(_generator(start), shape, low, high),
        )

    def _weight(self, shape: tuple[int, ...], gain: float) -> str:
        bound = math.sqrt(3.0 * gain / math.prod(shape[1:]))
        return self.constant("weight", self._uniform(shape, -bound, bound))

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int,
        stride: int = 1,
        *,
        group: int = 1,
        pad: int | None = None,
        gain: float = RELU_GAIN,
        bias: bool = False,
    ) -> str:
        """Add a square convolution; ``pad`` None keeps the image's size at stride 1."""
        pad = kernel // 2 if pad is None else pad
        weight = self._weight((channels, self._channels[x] // group, kernel, kernel), gain)
        offset = (self.constant("bias", self._uniform((channels,), -0.1, 0.1)),) if bias else ()
        return self.node(
            "Conv",
            (x, weight, *offset),
            channels,
            kernel_shape=(kernel, kernel),
            strides=(stride, stride),
            pads=(pad,) * 4,
            dilations=(1, 1),
            group=group,
        )

    def batch_norm(self, x: str, scale: float = 1.0, variance: float = 1.0) -> str:
        """Add a batch norm whose output has a variance of about ``scale`` squared for inputs of ``variance``."""
        channels = self._channels[x]
        shape = (channels,)
        inputs = (
            x,
            self.constant("gamma", self._uniform(shape, 0.8 * scale, 1.2 * scale)),
            self.constant("beta", self._uniform(shape, -0.2, 0.2)),
            self.constant("mean", self._uniform(shape, -0.2, 0.2)),
            self.constant("variance", self._uniform(shape, 0.5 * variance, 1.5 * variance)),
        )
        return self.node("BatchNormalization", inputs, channels, epsilon=1e-5)

    def relu(self, x: str) -> str:
        """Add max(x, 0)."""
        return self.node("Relu", (x,), self._channels[x])

    def leaky_relu(self, x: str, slope: float) -> str:
        """Add x where it is above 0, slope times x elsewhere."""
        return self.node("LeakyRelu", (x,), self._channels[x], alpha=slope)

    def upsample(self, x: str, factor: int) -> str:
        """Add the repetition of each pixel, in ONNX a Resize by the nearest pixel."""
        scales = self.constant("scales", np.array((1, 1, factor, factor), np.float32))
        return self.node(
            "Resize",
            (x, "", scales),
            self._channels[x],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )

    def relu6(self, x: str) -> str:
        """Add min(max(x, 0), 6), in ONNX a Clip."""
        bounds = self.constant("low", np.array(0, np.float32)), self.constant("high", np.array(6, np.float32))
        return self.node("Clip", (x, *bounds), self._channels[x])

    def sigmoid(self, x: str) -> str:
        """Add 1 / (1 + exp(-x))."""
        return self.node("Sigmoid", (x,), self._channels[x])

    def silu(self, x: str) -> str:
        """Add x times its sigmoid, as exporters write it: ONNX has no operator for it."""
        return self.multiply(x, self.sigmoid(x))

    def hard_sigmoid(self, x: str) -> str:
        """Add min(max(x / 6 + 1/2, 0), 1)."""
        return self.node("HardSigmoid", (x,), self._channels[x], alpha=1 / 6, beta=0.5)

    def hard_swish(self, x: str) -> str:
        """Add x times its hard sigmoid."""
        return self.node("HardSwish", (x,), self._channels[x])

    def squeeze_excite(self, x: str, channels: int, between: Callable[[str], str], gate: Callable[[str], str]) -> str:
        """Add x times factors a channel that come from all channels' means (https://arxiv.org/abs/1709.01507)."""
        y = between(self.conv(self.global_average_pool(x), channels, 1, bias=True))
        return self.multiply(x, gate(self.conv(y, self._channels[x], 1, bias=True)))

    def multiply(self, x: str, y: str) -> str:
        """Add x * y, where y may have one number a channel."""
        return self.node("Mul", (x, y), self._channels[x])

    def add(self, x: str, y: str) -> str:
        """Add x + y."""
        return self.node("Add", (x, y), self._channels[x])

    def max_pool(
        self, x: str, kernel: int, stride: int, pad: int = 0, *, pads: tuple[int, int, int, int] | None = None
    ) -> str:
        """Add a square max pool; ``pads`` above, left, below and right, where they are not all ``pad``."""
        return self.node(
            "MaxPool",
            (x,),
            self._channels[x],
            kernel_shape=(kernel, kernel),
            strides=(stride, stride),
            pads=pads or (pad,) * 4,
        )

    def average_pool(self, x: str, kernel: int, stride: int) -> str:
        """Add a square average pool without padding."""
        return self.node(
            "AveragePool",
            (x,),
            self._channels[x],
            kernel_shape=(kernel, kernel),
            strides=(stride, stride),
        )

    def concat(self, *parts: str) -> str:
        """Add the concatenation of channels."""
        return self.node("Concat", parts, sum(self._channels[part] for part in parts), axis=1)

    def lrn(self, x: str) -> str:
        """Add local response normalisation over five channels, with AlexNet's constants."""
        return self.node("LRN", (x,), self._channels[x], size=5, alpha=1e-4, beta=0.75, bias=1.0)

    def global_average_pool(self, x: str) -> str:
        """Add the mean over height and width."""
        return self.node("GlobalAveragePool", (x,), self._channels[x])

    def flatten(self, x: str, features: int) -> str:
        """Add the flattening of all but the batch axis to ``features`` values."""
        return self.node("Flatten", (x,), features, axis=1)

    def linear(self, x: str, features: int, gain: float = LINEAR_GAIN) -> str:
        """Add a fully connected layer with bias, in ONNX a Gemm with transB."""
        weight = self._weight((features, self._channels[x]), gain)
        bias = self.constant("bias", self._uniform((features,), -0.1, 0.1))
        return self.node("Gemm", (x, weight, bias), features, alpha=1.0, beta=1.0, transB=1)

    def dense(self, x: str, features: int, gain: float = LINEAR_GAIN) -> str:
        """Add a fully connected layer with bias over the last axis, as exporters write it: MatMul and Add."""
        inputs = self._channels[x]
        bound = math.sqrt(3.0 * gain / inputs)
        weight = self.constant("weight", self._uniform((inputs, features), -bound, bound))
        y = self.node("MatMul", (x, weight), features)
        return self.node("Add", (y, self.constant("bias", self._uniform((features,), -0.1, 0.1))), features)

    def layer_norm(self, x: str) -> str:
        """Add a layer norm over the last axis (https://arxiv.org/abs/1607.06450)."""
        features = self._channels[x]
        scale = self.constant("gamma", self._uniform((features,), 0.8, 1.2))
        shift = self.constant("beta", self._uniform((features,), -0.2, 0.2))
        return self.node("LayerNormalization", (x, scale, shift), features, axis=-1, epsilon=1e-6)

    def gelu(self, x: str) -> str:
        """Add x / 2 * (1 + erf(x / sqrt(2))), as exporters write it: ONNX had no operator for it before opset 20."""
        features = self._channels[x]
        y = self.node("Erf", (self.node("Div", (x, self.number(math.sqrt(2))), features),), features)
        y = self.node("Mul", (x, self.node("Add", (y, self.number(1)), features)), features)
        return self.node("Mul", (y, self.number(0.5)), features)

    def number(self, value: float) -> str:
        """Add a scalar to the next node."""
        return self.constant("number", np.array(value, np.float32))

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        """Add a view of another shape: 0 keeps an axis, -1 is what is left."""
        features = shape[-1] if shape[-1] > 0 else 0
        return self.node("Reshape", (x, self.constant("shape", np.array(shape))), features)

    def transpose(self, x: str, *axes: int, features: int = 0) -> str:
        """Add a change of the order of axes; ``features`` is the size of the last one, where it is another."""
        return self.node("Transpose", (x,), features or self._channels[x], perm=axes)

    def attention(self, x: str, heads: int) -> str:
        """Add softmax(q k' / sqrt(d)) v for every head, d numbers each, and what joins the heads.

        https://arxiv.org/abs/1706.03762, for sequences; every head has as many of their numbers.
        """
        width = self._channels[x]
        own = width // heads
        parts = [self.reshape(self.dense(x, width), (0, -1, heads, own)) for _ in range(3)]
        query, value = (self.transpose(one, 0, 2, 1, 3) for one in (parts[0], parts[2]))
        product = self.node("MatMul", (query, self.transpose(parts[1], 0, 2, 3, 1)), 0)
        scores = self.node("Softmax", (self.node("Mul", (product, self.number(own**-0.5)), 0),), 0, axis=-1)
        joined = self.transpose(self.node("MatMul", (scores, value), own), 0, 2, 1, 3)
        return self.dense(self.reshape(joined, (0, -1, width)), width)

    def embedding(self, *shape: int) -> str:
        """Add learned numbers of their own to the next node."""
        return self.constant("embedding", self._uniform(shape, -0.5, 0.5))

    def swap_first_axes(self, x: str) -> str:
        """Add the swap of sequences and time steps, numbers staying last."""
        return self.node("Transpose", (x,), self._channels[x], perm=(1, 0, 2))

    def lstm(self, x: str, hidden: int) -> str:
        """Add an LSTM over (steps, batch, numbers) with PyTorch's first weights; its output has that shape too."""
        bound = 1 / math.sqrt(hidden)
        weights = (
            self.constant(label, self._uniform(shape, -bound, bound))
            for label, shape in (
                ("weight", (1, 4 * hidden, self._channels[x])),
                ("recurrence", (1, 4 * hidden, hidden)),
                ("bias", (1, 8 * hidden)),
            )
        )
        y = self.node("LSTM", (x, *weights), hidden, hidden_size=hidden)
        return self.node("Squeeze", (y, self.constant("axes", np.array([1]))), hidden)

    def build(self, output: str | Sequence[str], input_shape: tuple[int, ...]) -> Graph:
        """Return the checked graph for an input of that shape.

        Args:
            output: the outputs; one is named ``y``, several ``y1``, ``y2`` and so on.
            input_shape: with the batch in front.
        """
        outputs = (output,) if isinstance(output, str) else tuple(output)
        names = (OUTPUT_NAME,) if len(outputs) == 1 else tuple(f"{OUTPUT_NAME}{i + 1}" for i in range(len(outputs)))
        renamed = dict(zip(outputs, names, strict=True))
        nodes = [
            replace(
                node,
                inputs=tuple(renamed.get(name, name) for name in node.inputs),
                outputs=tuple(renamed.get(name, name) for name in node.outputs),
            )
            for node in self._nodes
        ]
        return infer(self._name, nodes, (TensorInfo(INPUT_NAME, input_shape),), names, self._constants)
