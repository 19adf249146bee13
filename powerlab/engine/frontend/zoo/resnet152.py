"""ResNet-152: table 1 of https://arxiv.org/abs/1512.03385. 60.193 M parameters, 11.51 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.residual import with_bottlenecks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ResNet-152 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_bottlenecks("resnet152", seed=152, blocks=(3, 8, 36, 3), input_shape=input_shape)
