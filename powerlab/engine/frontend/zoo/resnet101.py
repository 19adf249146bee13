"""ResNet-101: table 1 of https://arxiv.org/abs/1512.03385. 44.549 M parameters, 7.80 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.residual import with_bottlenecks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ResNet-101 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_bottlenecks("resnet101", seed=101, blocks=(3, 4, 23, 3), input_shape=input_shape)
