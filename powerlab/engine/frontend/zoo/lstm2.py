"""Two LSTM layers of 256 units over 32 steps, as PyTorch exports nn.LSTM(256, 256, 2, batch_first=True).

1.053 M parameters, 33.55 MMAC a sequence. What powerlab counts as images of other networks are sequences of this one.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, Builder
from powerlab.engine.ir.graph import Graph

STEPS = 32
FEATURES = 256
_LAYERS = 2


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return the network for sequences of ``input_shape`` (batch, steps, 256); it puts out the last layer's, alike."""
    net = Builder("lstm2", seed=256, features=FEATURES)
    x = net.swap_first_axes(INPUT_NAME)
    for _ in range(_LAYERS):
        x = net.lstm(x, FEATURES)
    return net.build(net.swap_first_axes(x), input_shape)
