"""What the networks of Darknet (https://pjreddie.com/darknet/yolo) are made of."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import LINEAR_GAIN, Builder

_SLOPE = 0.1
_MAPS = 255
"""Three boxes a place, each of four sizes, a score and 80 classes."""


def layer(net: Builder, x: str, channels: int, kernel: int, *, stride: int = 1, scale: float = 1.0) -> str:
    """Add a convolution, its batch norm and a leaky ReLU."""
    return net.leaky_relu(net.batch_norm(net.conv(x, channels, kernel, stride), scale=scale), _SLOPE)


def maps(net: Builder, x: str, channels: int) -> str:
    """Add what makes boxes of features: a 3 x 3 layer of ``channels`` and the raw map of 255 channels."""
    return net.conv(layer(net, x, channels, 3), _MAPS, 1, gain=LINEAR_GAIN, bias=True)
