"""EfficientNet-B0: https://arxiv.org/abs/1905.11946, table 1. 5.289 M parameters, 0.386 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

_STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 3, 2),
    (6, 5, 112, 3, 1),
    (6, 5, 192, 4, 2),
    (6, 3, 320, 1, 1),
)
"""Expansion, kernel, channels out, number of blocks, stride of the first block."""

_BRANCH_SCALE = 0.3


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return EfficientNet-B0 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    net = Builder("efficientnet-b0", seed=70)
    x, channels = net.silu(net.batch_norm(net.conv(INPUT_NAME, 32, 3, stride=2), variance=2.0)), 32
    for expansion, kernel, out, blocks, first_stride in _STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            inside = expansion * channels
            y = x if expansion == 1 else net.silu(net.batch_norm(net.conv(x, inside, 1)))
            y = net.silu(net.batch_norm(net.conv(y, inside, kernel, stride, group=inside)))
            y = net.squeeze_excite(y, channels // 4, net.silu, net.sigmoid)
            adds = stride == 1 and channels == out
            y = net.batch_norm(net.conv(y, out, 1), scale=_BRANCH_SCALE if adds else 1.0)
            x, channels = net.add(x, y) if adds else y, out
    x = net.silu(net.batch_norm(net.conv(x, 1280, 1)))
    x = net.flatten(net.global_average_pool(x), 1280)
    return net.build(net.linear(net.node("Dropout", (x,), 1280), 1000), input_shape)
