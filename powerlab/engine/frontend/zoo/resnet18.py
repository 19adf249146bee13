"""ResNet-18: table 1 of https://arxiv.org/abs/1512.03385. 11.690 M parameters, 1.81 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.residual import with_basic_blocks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ResNet-18 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_basic_blocks("resnet18", seed=18, blocks=(2, 2, 2, 2), input_shape=input_shape)
