"""ResNet-50 v1.5: table 1 of https://arxiv.org/abs/1512.03385.

25.557 M parameters; 4.09 GMAC at 224×224 by the count that leaves out the classifier's bias and the pools.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.residual import with_bottlenecks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ResNet-50 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_bottlenecks("resnet50", seed=50, blocks=(3, 4, 6, 3), input_shape=input_shape)
