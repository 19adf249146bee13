"""DenseNet-121: table 1 of https://arxiv.org/abs/1608.06993. 7.979 M parameters, 2.83 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.dense import with_dense_blocks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return DenseNet-121 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_dense_blocks("densenet121", seed=121, blocks=(6, 12, 24, 16), input_shape=input_shape)
