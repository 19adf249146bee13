"""YOLOv3: https://arxiv.org/abs/1804.02767, table 1 and section 2.3. 61.949 M parameters, 32.93 GMAC at 416×416.

The three outputs are the raw maps of 255 channels at strides 32, 16 and 8: boxes are not decoded.
"""

from __future__ import annotations

from powerlab.engine.graph import Graph
from powerlab.engine.zoo.builder import INPUT_NAME, LINEAR_GAIN, Builder

_STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))
"""Darknet-53: channels and number of residual blocks of each stage."""

_SLOPE = 0.1
_BRANCH_SCALE = 0.3
_MAPS = 255


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return YOLOv3 for images of ``input_shape`` (batch, 3, height, width), multiples of 32."""
    net = Builder("yolov3", seed=3)
    x = _layer(net, INPUT_NAME, 32, 3)
    ends = []
    for channels, blocks in _STAGES:
        x = _layer(net, x, channels, 3, stride=2)
        for _ in range(blocks):
            x = net.add(x, _layer(net, _layer(net, x, channels // 2, 1), channels, 3, scale=_BRANCH_SCALE))
        ends.append(x)
    maps = []
    for number, channels in enumerate((512, 256, 128)):
        if number:
            x = net.concat(net.upsample(_layer(net, x, channels, 1), 2), ends[-1 - number])
        x, found = _head(net, x, channels)
        maps.append(found)
    return net.build(maps, input_shape)


def _layer(net: Builder, x: str, channels: int, kernel: int, *, stride: int = 1, scale: float = 1.0) -> str:
    return net.leaky_relu(net.batch_norm(net.conv(x, channels, kernel, stride), scale=scale), _SLOPE)


def _head(net: Builder, x: str, channels: int) -> tuple[str, str]:
    """Return what the next head starts from, and the map of this one."""
    for _ in range(2):
        x = _layer(net, _layer(net, x, channels, 1), 2 * channels, 3)
    x = _layer(net, x, channels, 1)
    return x, net.conv(_layer(net, x, 2 * channels, 3), _MAPS, 1, gain=LINEAR_GAIN, bias=True)
