"""Networks made by a seed, for gradients: layers and branches that no zoo combines so, with activations that bend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

_SIDE, _LEAST_SIDE, _MOST_SIDE = 16, 4, 32
_LEAST_LAYERS, _MOST_LAYERS = 6, 12
_CLASSES, _HEADS = 10, 2
_CHANNELS = (8, 12, 20)


class _Network:
    """A network that grows; each layer takes what the last one made.

    Args:
        seed: of its layers and weights.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._net = Builder(f"random-{seed}", seed)
        self._side, self._channels = _SIDE, int(self._random.choice(_CHANNELS))
        self._x = self._net.conv(INPUT_NAME, self._channels, 3, bias=True)

    def graph(self, batch_size: int) -> Graph:
        """Return it with random layers and a classifier behind them."""
        layers: tuple[Callable[[], str], ...] = (
            *(self._convolution, self._dilated, self._depthwise, self._norm, self._bend, self._shrink, self._grow),
            *(self._residual, self._branch, self._gate, self._local_norm, self._attention),
        )
        for _ in range(self._random.integers(_LEAST_LAYERS, _MOST_LAYERS + 1)):
            self._x = layers[self._random.integers(len(layers))]()
        net = self._net
        y = net.linear(net.flatten(net.global_average_pool(self._x), self._channels), _CLASSES)
        return net.build(y, (batch_size, 3, _SIDE, _SIDE))

    def _convolution(self) -> str:
        stride = int(self._random.integers(1, 3)) if self._side > _LEAST_SIDE else 1
        kernel, group = int(self._random.choice((1, 3, 5))), int(self._random.choice((1, 2, 4)))
        self._side //= stride
        self._channels = int(self._random.choice(_CHANNELS))
        return self._net.conv(self._x, self._channels, kernel, stride, group=group)

    def _dilated(self) -> str:
        bound = (3.0 / (9 * self._channels)) ** 0.5
        weight = self._random.uniform(-bound, bound, (self._channels, self._channels, 3, 3)).astype(np.float32)
        inputs = (self._x, self._net.constant("weight", weight))
        return self._net.node("Conv", inputs, self._channels, kernel_shape=(3, 3), dilations=(2, 2), pads=(2,) * 4)

    def _depthwise(self) -> str:
        return self._net.conv(self._x, self._channels, 3, group=self._channels, bias=True)

    def _norm(self) -> str:
        return self._net.batch_norm(self._x)

    def _bend(self) -> str:
        net, x = self._net, self._x
        choices = (net.sigmoid, net.silu, net.gelu, self._softplus)
        return choices[self._random.integers(len(choices))](x)

    def _softplus(self, x: str) -> str:
        return self._net.node("Softplus", (x,), self._channels)

    def _shrink(self) -> str:
        if self._side <= _LEAST_SIDE:
            return self._bend()
        self._side //= 2
        if self._random.integers(2):
            return self._net.max_pool(self._x, 3, 2, 1)
        return self._net.average_pool(self._x, 2, 2)

    def _grow(self) -> str:
        if self._side >= _MOST_SIDE:
            return self._bend()
        self._side *= 2
        return self._net.upsample(self._x, 2)

    def _residual(self) -> str:
        return self._net.add(self._x, self._softplus(self._net.conv(self._x, self._channels, 3)))

    def _branch(self) -> str:
        more = int(self._random.choice(_CHANNELS))
        joined = self._net.concat(self._x, self._net.conv(self._x, more, 1, bias=True))
        self._channels = int(self._random.choice(_CHANNELS))
        return self._net.conv(joined, self._channels, 1)

    def _gate(self) -> str:
        return self._net.squeeze_excite(self._x, self._channels, self._softplus, self._net.sigmoid)

    def _local_norm(self) -> str:
        return self._net.lrn(self._x)

    def _attention(self) -> str:
        net, channels = self._net, self._channels
        pixels = net.transpose(net.reshape(self._x, (0, channels, -1)), 0, 2, 1, features=channels)
        mixed = net.attention(net.layer_norm(pixels), _HEADS)
        images = net.reshape(net.transpose(mixed, 0, 2, 1, features=channels), (0, channels, self._side, self._side))
        return net.add(self._x, images)


def random_network(seed: int, batch_size: int) -> Graph:
    """Return a network for images whose layers, sizes and weights come from a seed."""
    return _Network(seed).graph(batch_size)
