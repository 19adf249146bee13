"""AlexNet as published (Krizhevsky et al., 2012) and as in Caffe's reference: two groups, LRN, 60.97 M parameters.

Caffe crops images to 227×227 without padding; here they are 224×224, as the paper says, with a padding of 2 in the
first convolution, so that every later layer has the published size (55×55 onwards). Norm before pool, as in the paper.
"""

from __future__ import annotations

from powerlab.engine.frontend.zoo.builder import INPUT_NAME, LINEAR_GAIN, RELU_GAIN, Builder
from powerlab.engine.ir.graph import Graph


def build(input_shape: tuple[int, ...]) -> Graph:
    """Return AlexNet for images of ``input_shape`` (batch, 3, 224, 224); it puts out 1000 probabilities."""
    net = Builder("alexnet", seed=12)
    x = net.relu(net.conv(INPUT_NAME, 96, 11, stride=4, pad=2, bias=True))
    x = net.max_pool(net.lrn(x), 3, stride=2)
    x = net.relu(net.conv(x, 256, 5, group=2, bias=True))
    x = net.max_pool(net.lrn(x), 3, stride=2)
    x = net.relu(net.conv(x, 384, 3, bias=True))
    x = net.relu(net.conv(x, 384, 3, group=2, bias=True))
    x = net.relu(net.conv(x, 256, 3, group=2, bias=True))
    x = net.flatten(net.max_pool(x, 3, stride=2), 256 * 6 * 6)
    for _ in range(2):
        x = net.relu(net.linear(x, 4096, gain=RELU_GAIN))
        x = net.node("Dropout", (x,), 4096)
    x = net.linear(x, 1000, gain=LINEAR_GAIN)
    return net.build(net.node("Softmax", (x,), 1000, axis=-1), input_shape)
