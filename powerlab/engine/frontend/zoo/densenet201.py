"""DenseNet-201: table 1 of https://arxiv.org/abs/1608.06993. 20.014 M parameters, 4.29 GMAC at 224×224."""

from __future__ import annotations

from powerlab.engine.frontend.zoo.dense import with_dense_blocks
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return DenseNet-201 for images of ``input_shape`` (batch, 3, height, width); it puts out 1000 logits."""
    return with_dense_blocks("densenet201", seed=201, blocks=(6, 12, 48, 32), input_shape=input_shape)
