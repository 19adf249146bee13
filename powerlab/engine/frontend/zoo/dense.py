"""The densely connected networks of https://arxiv.org/abs/1608.06993 (DenseNet-BC), growth rate 32."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

_GROWTH = 32


def with_dense_blocks(name: str, seed: int, blocks: tuple[int, int, int, int], input_shape: tuple[int, ...]) -> Graph:
    """Return a network whose layers read all layers of their block before them; ``blocks`` counts layers."""
    net = Builder(name, seed)
    x = net.relu(net.batch_norm(net.conv(INPUT_NAME, 64, 7, stride=2), variance=2.0))
    x, channels = net.max_pool(x, 3, stride=2, pad=1), 64
    for number, layers in enumerate(blocks):
        for _ in range(layers):
            x, channels = net.concat(x, _layer(net, x)), channels + _GROWTH
        x = net.relu(net.batch_norm(x))
        if number + 1 < len(blocks):
            channels //= 2
            x = net.average_pool(net.conv(x, channels, 1), 2, stride=2)
    x = net.flatten(net.global_average_pool(x), channels)
    return net.build(net.linear(x, 1000), input_shape)


def _layer(net: Builder, x: str) -> str:
    y = net.conv(net.relu(net.batch_norm(x)), 4 * _GROWTH, 1)
    return net.conv(net.relu(net.batch_norm(y)), _GROWTH, 3)
