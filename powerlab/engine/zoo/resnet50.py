"""ResNet-50 v1.5: https://arxiv.org/abs/1512.03385, with the stride of a stage in its first 3×3 convolution.

25.557 M parameters; 4.09 GMAC at 224×224 by the count that leaves out the classifier's bias and the pools.
"""

from __future__ import annotations

from powerlab.engine.graph import Graph
from powerlab.engine.zoo.builder import INPUT_NAME, Builder

_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels inside the bottleneck and number of blocks; a block puts out four times the channels."""

_BRANCH_SCALE = 0.3
"""Scale of the norm that ends a residual branch: small, as in trained networks, so that sums do not grow."""


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ResNet-50 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    net = Builder("resnet50", seed=50)
    x = net.relu(net.batch_norm(net.conv(INPUT_NAME, 64, 7, stride=2), variance=2.0))
    x = net.max_pool(x, 3, stride=2, pad=1)
    for stage, (channels, blocks) in enumerate(_STAGES):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _bottleneck(net, x, channels, stride, project=block == 0)
    x = net.flatten(net.global_average_pool(x), 4 * _STAGES[-1][0])
    return net.build(net.linear(x, 1000), input_shape)


def _bottleneck(net: Builder, x: str, channels: int, stride: int, project: bool) -> str:
    shortcut = net.batch_norm(net.conv(x, 4 * channels, 1, stride)) if project else x
    y = net.relu(net.batch_norm(net.conv(x, channels, 1)))
    y = net.relu(net.batch_norm(net.conv(y, channels, 3, stride)))
    y = net.batch_norm(net.conv(y, 4 * channels, 1), scale=_BRANCH_SCALE)
    return net.relu(net.add(y, shortcut))
