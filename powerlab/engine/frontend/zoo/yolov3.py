"""YOLOv3: https://arxiv.org/abs/1804.02767, table 1 and section 2.3. 61.949 M parameters, 32.93 GMAC at 416×416.

The three outputs are the raw maps of 255 channels at strides 32, 16 and 8: boxes are not decoded.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.frontend.zoo.darknet import layer, maps
from powerlab.engine.ir.graph import Graph

_STAGES = ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4))
"""Darknet-53: channels and number of residual blocks of each stage."""

_BRANCH_SCALE = 0.3


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return YOLOv3 for images of ``input_shape`` (batch, 3, height, width), multiples of 32."""
    net = Builder("yolov3", seed=3)
    x = layer(net, INPUT_NAME, 32, 3)
    ends = []
    for channels, blocks in _STAGES:
        x = layer(net, x, channels, 3, stride=2)
        for _ in range(blocks):
            x = net.add(x, layer(net, layer(net, x, channels // 2, 1), channels, 3, scale=_BRANCH_SCALE))
        ends.append(x)
    found = []
    for number, channels in enumerate((512, 256, 128)):
        if number:
            x = net.concat(net.upsample(layer(net, x, channels, 1), 2), ends[-1 - number])
        for _ in range(2):
            x = layer(net, layer(net, x, channels, 1), 2 * channels, 3)
        x = layer(net, x, channels, 1)
        found.append(maps(net, x, 2 * channels))
    return net.build(found, input_shape)
