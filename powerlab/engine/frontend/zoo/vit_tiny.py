"""ViT-Tiny/16: https://arxiv.org/abs/2010.11929, of the sizes of DeiT-Ti: https://arxiv.org/abs/2012.12877, table 1.

5.717 M parameters, 1.254 GMAC at 224×224.
"""

from __future__ import annotations

import numpy as np

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, LINEAR_GAIN, RELU_GAIN, Builder
from powerlab.engine.ir.graph import Graph

_PATCH = 16
_WIDTH = 192
_HEADS = 3
_LAYERS = 12


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return ViT-Tiny/16 for images of ``input_shape`` (batch, 3, height, width), multiples of 16; 1000 logits."""
    batch, _, height, width = input_shape
    tokens = (height // _PATCH) * (width // _PATCH) + 1
    net = Builder("vit-tiny", seed=16)
    x = net.conv(INPUT_NAME, _WIDTH, _PATCH, stride=_PATCH, pad=0, gain=LINEAR_GAIN, bias=True)
    x = net.transpose(net.reshape(x, (0, _WIDTH, -1)), 0, 2, 1, features=_WIDTH)
    every_image = net.constant("shape", np.array((batch, 1, _WIDTH)))
    of_class = net.node("Expand", (net.embedding(1, 1, _WIDTH), every_image), _WIDTH)
    x = net.node("Concat", (of_class, x), _WIDTH, axis=1)
    x = net.node("Add", (x, net.embedding(1, tokens, _WIDTH)), _WIDTH)
    for _ in range(_LAYERS):
        x = net.add(x, net.attention(net.layer_norm(x), _HEADS))
        x = net.add(x, net.dense(net.gelu(net.dense(net.layer_norm(x), 4 * _WIDTH)), _WIDTH, gain=RELU_GAIN))
    first = net.constant("first", np.array(0))
    return net.build(net.linear(net.node("Gather", (net.layer_norm(x), first), _WIDTH, axis=1), 1000), input_shape)
