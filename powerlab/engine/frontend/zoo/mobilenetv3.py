"""MobileNetV3-Large: https://arxiv.org/abs/1905.02244, table 1. 5.483 M parameters, 0.217 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, LINEAR_GAIN, Builder
from powerlab.engine.ir.graph import Graph

_BLOCKS = (
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)
"""Kernel, channels inside, channels out, squeeze and excitation, hard swish rather than ReLU, stride."""

_BRANCH_SCALE = 0.3


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return MobileNetV3-Large for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    net = Builder("mobilenetv3", seed=33)
    x = net.hard_swish(net.batch_norm(net.conv(INPUT_NAME, 16, 3, stride=2), variance=2.0))
    channels = 16
    for kernel, inside, out, squeezes, swish, stride in _BLOCKS:
        activate = net.hard_swish if swish else net.relu
        y = x if inside == channels else activate(net.batch_norm(net.conv(x, inside, 1)))
        y = activate(net.batch_norm(net.conv(y, inside, kernel, stride, group=inside)))
        if squeezes:
            y = net.squeeze_excite(y, _rounded(inside // 4), net.relu, net.hard_sigmoid)
        adds = stride == 1 and channels == out
        y = net.batch_norm(net.conv(y, out, 1), scale=_BRANCH_SCALE if adds else 1.0)
        x, channels = net.add(x, y) if adds else y, out
    x = net.hard_swish(net.batch_norm(net.conv(x, 960, 1, gain=LINEAR_GAIN)))
    x = net.hard_swish(net.linear(net.flatten(net.global_average_pool(x), 960), 1280))
    return net.build(net.linear(net.node("Dropout", (x,), 1280), 1000), input_shape)


def _rounded(channels: int) -> int:
    """Return a multiple of 8 near a number, no less than nine tenths of it."""
    near = max(8, (channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near
