"""YOLOv3-tiny: yolov3-tiny.cfg of https://github.com/pjreddie/darknet. 8.852 M parameters, 2.78 GMAC at 416×416.

The two outputs are the raw maps of 255 channels at strides 32 and 16: boxes are not decoded.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.frontend.zoo.darknet import layer, maps
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return YOLOv3-tiny for images of ``input_shape`` (batch, 3, height, width), multiples of 32."""
    net = Builder("yolov3-tiny", seed=31)
    x = layer(net, INPUT_NAME, 16, 3)
    for channels in (32, 64, 128, 256):
        x = layer(net, net.max_pool(x, 2, stride=2), channels, 3)
    at_stride_16 = x
    x = layer(net, net.max_pool(x, 2, stride=2), 512, 3)
    x = layer(net, net.max_pool(x, 2, stride=1, pads=(0, 0, 1, 1)), 1024, 3)
    x = layer(net, x, 256, 1)
    finer = net.concat(net.upsample(layer(net, x, 128, 1), 2), at_stride_16)
    return net.build((maps(net, x, 512), maps(net, finer, 256)), input_shape)
