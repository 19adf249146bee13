"""Small networks over volumes: layer by layer what R3D-18, MC3-18 and R(2+1)D-18 have, and a U-Net of volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
from engine_models import onnx_bytes
from onnx import helper

_ALL = [1] * 6


class _Net:
    """Nodes and constants; each method adds a layer and returns its result."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random, self.nodes, self.constants = random, [], {}

    def node(self, operator: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        result = result or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], **attributes))
        return result

    def weights(self, *shape: int) -> str:
        fan_in = max(1, np.prod(shape[1:]))
        name = f"w{len(self.constants)}"
        self.constants[name] = (self.random.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
        return name

    def conv(self, x: str, channels: tuple[int, int], kernel: tuple[int, ...], **moves: Any) -> str:
        inputs, outputs = channels
        return self.node("Conv", x, self.weights(outputs, inputs, *kernel), self.weights(outputs), **moves)

    def normed(self, x: str, inputs: int, outputs: int) -> str:
        x = self.conv(x, (inputs, outputs), (3, 3, 3), pads=_ALL)
        scale, shift = self.weights(outputs), self.weights(outputs)
        return self.node("Relu", self.node("GroupNormalization", x, scale, shift, num_groups=4))

    def onnx_bytes(self, shape: tuple[int, ...]) -> bytes:
        return onnx_bytes(self.nodes, {"x": shape}, constants=self.constants, opset=21)


def video_network(random: np.random.Generator) -> bytes:
    """Return a residual network of 3 x 3 x 3, 1 x 3 x 3 and 3 x 1 x 1, to classify two videos of 6 images."""
    net = _Net(random)
    x = net.node("Relu", net.conv("x", (3, 12), (3, 7, 7), strides=[1, 2, 2], pads=[1, 3, 3] * 2))
    y = net.node("Relu", net.conv(x, (12, 12), (3, 3, 3), pads=_ALL))
    x = net.node("Relu", net.node("Add", net.conv(y, (12, 12), (3, 3, 3), pads=_ALL), x))
    y = net.node("Relu", net.conv(x, (12, 18), (1, 3, 3), strides=[1, 2, 2], pads=[0, 1, 1] * 2))
    y = net.conv(y, (18, 20), (3, 1, 1), strides=[2, 1, 1], pads=[1, 0, 0] * 2)
    x = net.node("Relu", net.node("Add", y, net.conv(x, (12, 20), (1, 1, 1), strides=[2, 2, 2])))
    pooled = net.node("Flatten", net.node("GlobalAveragePool", x))
    net.node("Gemm", pooled, net.weights(20, 9), result="y")
    return net.onnx_bytes((2, 3, 6, 18, 22))


def unet(random: np.random.Generator) -> bytes:
    """Return a U-Net of one step down and one up, for one volume."""
    net = _Net(random)
    wide = net.normed("x", 1, 8)
    x = net.node("MaxPool", wide, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    x = net.normed(x, 8, 16)
    x = net.node("ConvTranspose", x, net.weights(16, 8, 2, 2, 2), strides=[2, 2, 2])
    x = net.normed(net.node("Concat", x, wide, axis=1), 16, 8)
    net.node("Conv", x, net.weights(3, 8, 1, 1, 1), result="y")
    return net.onnx_bytes((1, 1, 6, 8, 10))
