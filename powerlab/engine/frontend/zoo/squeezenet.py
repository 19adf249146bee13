"""SqueezeNet 1.1: https://arxiv.org/abs/1602.07360, with the later release's sizes. 1.235 M parameters, 0.35 GMAC."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

_FIRES = ((16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256))
"""Channels squeezed to, and expanded to by each of two convolutions; None is a max pool."""


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return SqueezeNet 1.1 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    net = Builder("squeezenet", seed=11)
    x = net.relu(net.conv(INPUT_NAME, 64, 3, stride=2, pad=0, bias=True))
    x = net.max_pool(x, 3, stride=2)
    for fire in _FIRES:
        x = net.max_pool(x, 3, stride=2) if fire is None else _fire(net, x, *fire)
    x = net.relu(net.conv(net.node("Dropout", (x,), 512), 1000, 1, bias=True))
    return net.build(net.flatten(net.global_average_pool(x), 1000), input_shape)


def _fire(net: Builder, x: str, squeezed: int, expanded: int) -> str:
    y = net.relu(net.conv(x, squeezed, 1, bias=True))
    sides = (net.relu(net.conv(y, expanded, kernel, bias=True)) for kernel in (1, 3))
    return net.concat(*sides)
