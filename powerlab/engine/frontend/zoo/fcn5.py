"""FCN-S, the fully connected network of dlbench (https://arxiv.org/abs/1608.07249): three hidden layers of 2048.

26,752 values in and out, 118 M parameters: nearly nothing but reading weights at a small batch.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, LINEAR_GAIN, RELU_GAIN, Builder
from powerlab.engine.ir.graph import Graph

FEATURES = 26_752
_HIDDEN = 2048


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return FCN-S for rows of ``input_shape`` (batch, 26752)."""
    net = Builder("fcn5", seed=5, features=FEATURES)
    x = INPUT_NAME
    for _ in range(3):
        x = net.relu(net.linear(x, _HIDDEN, gain=RELU_GAIN))
    return net.build(net.linear(x, FEATURES, gain=LINEAR_GAIN), input_shape)
