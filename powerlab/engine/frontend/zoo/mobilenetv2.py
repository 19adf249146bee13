"""MobileNetV2 at width 1.0: https://arxiv.org/abs/1801.04381, table 2. 3.505 M parameters, 0.30 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, LINEAR_GAIN, Builder
from powerlab.engine.ir.graph import Graph

_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels out, number of blocks, stride of the first block."""

_BRANCH_SCALE = 0.3


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return MobileNetV2 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    net = Builder("mobilenetv2", seed=2)
    x = net.relu6(net.batch_norm(net.conv(INPUT_NAME, 32, 3, stride=2), variance=2.0))
    channels_in = 32
    for expansion, channels, blocks, first_stride in _STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            x = _inverted_residual(net, x, expansion, (channels_in, channels), stride)
            channels_in = channels
    x = net.relu6(net.batch_norm(net.conv(x, 1280, 1, gain=LINEAR_GAIN)))
    x = net.flatten(net.global_average_pool(x), 1280)
    return net.build(net.linear(net.node("Dropout", (x,), 1280), 1000), input_shape)


def _inverted_residual(net: Builder, x: str, expansion: int, ends: tuple[int, int], stride: int) -> str:
    channels_in, channels = ends
    hidden = expansion * channels_in
    y = x
    if expansion > 1:
        y = net.relu6(net.batch_norm(net.conv(y, hidden, 1, gain=LINEAR_GAIN)))
    y = net.relu6(net.batch_norm(net.conv(y, hidden, 3, stride, group=hidden)))
    adds = stride == 1 and channels_in == channels
    y = net.batch_norm(net.conv(y, channels, 1), scale=_BRANCH_SCALE if adds else 1.0)
    return net.add(x, y) if adds else y
