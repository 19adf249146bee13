"""VGG-16: column D of table 1 of https://arxiv.org/abs/1409.1556. 138.358 M parameters, 15.47 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, RELU_GAIN, Builder
from powerlab.engine.ir.graph import Graph

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and number of convolutions, with a max pool after each stage."""


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return VGG-16 for images of ``input_shape`` (batch, 3, 224, 224); it puts out 1000 logits."""
    net = Builder("vgg16", seed=16)
    x = INPUT_NAME
    for channels, count in _STAGES:
        for _ in range(count):
            x = net.relu(net.conv(x, channels, 3, bias=True))
        x = net.max_pool(x, 2, stride=2)
    x = net.flatten(x, 512 * 7 * 7)
    for _ in range(2):
        x = net.node("Dropout", (net.relu(net.linear(x, 4096, gain=RELU_GAIN)),), 4096)
    return net.build(net.linear(x, 1000), input_shape)
