"""The residual networks of https://arxiv.org/abs/1512.03385; a stage has its stride in its first 3×3 convolution."""

from __future__ import annotations

import math
from collections.abc import Callable

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

_CHANNELS = (64, 128, 256, 512)
"""Channels inside the blocks of each stage."""

_SUM_SCALE = 1.2
"""Scale of the norms that end the residual branches, over all of them: sums shall not grow with a network's depth."""

_Block = Callable[..., str]


def with_bottlenecks(name: str, seed: int, blocks: tuple[int, int, int, int], input_shape: tuple[int, ...]) -> Graph:
    """Return a network of bottleneck blocks, which put out four times the channels inside them."""
    return _network(Builder(name, seed), blocks, _bottleneck, 4, input_shape)


def with_basic_blocks(name: str, seed: int, blocks: tuple[int, int, int, int], input_shape: tuple[int, ...]) -> Graph:
    """Return a network of blocks of two 3×3 convolutions."""
    return _network(Builder(name, seed), blocks, _basic, 1, input_shape)


def _network(
    net: Builder, blocks: tuple[int, int, int, int], block: _Block, widening: int, input_shape: tuple[int, ...]
) -> Graph:
    x = net.relu(net.batch_norm(net.conv(INPUT_NAME, 64, 7, stride=2), variance=2.0))
    x = net.max_pool(x, 3, stride=2, pad=1)
    branch_scale = _SUM_SCALE / math.sqrt(sum(blocks))
    for stage, (channels, count) in enumerate(zip(_CHANNELS, blocks, strict=True)):
        for number in range(count):
            stride = 2 if stage > 0 and number == 0 else 1
            project = number == 0 and (stage > 0 or widening > 1)
            x = block(net, x, channels, stride, project=project, scale=branch_scale)
    x = net.flatten(net.global_average_pool(x), widening * _CHANNELS[-1])
    return net.build(net.linear(x, 1000), input_shape)


def _bottleneck(net: Builder, x: str, channels: int, stride: int, *, project: bool, scale: float) -> str:
    shortcut = net.batch_norm(net.conv(x, 4 * channels, 1, stride)) if project else x
    y = net.relu(net.batch_norm(net.conv(x, channels, 1)))
    y = net.relu(net.batch_norm(net.conv(y, channels, 3, stride)))
    y = net.batch_norm(net.conv(y, 4 * channels, 1), scale=scale)
    return net.relu(net.add(y, shortcut))


def _basic(net: Builder, x: str, channels: int, stride: int, *, project: bool, scale: float) -> str:
    shortcut = net.batch_norm(net.conv(x, channels, 1, stride)) if project else x
    y = net.relu(net.batch_norm(net.conv(x, channels, 3, stride)))
    y = net.batch_norm(net.conv(y, channels, 3), scale=scale)
    return net.relu(net.add(y, shortcut))
