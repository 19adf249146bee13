"""Room in which ``conv_planes`` keeps the planes that windows see: see ``kernels/strided/conv_planes.hpp``."""

from __future__ import annotations

import math

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand

_CACHED_FLOATS = 2**17
"""So many planes are read again from a cache close by."""

_SLACK_FLOATS = 256
"""What the last tile may read behind the last plane."""


def plane_room(builder: Builder, node: Node) -> Operand:
    """Return room for each thread, shape (threads, floats), for a convolution of General kernels.

    Its last input holds groups, strides, pads and dilations; the room has planes of as many channels of a group as
    fit into a cache, but for one at least.
    """
    graph = builder.graph
    _, *strides_on = (int(number) for number in graph.constants[node.inputs[-1]])
    strides, dilations = strides_on[:3], strides_on[6:9]
    inputs, *kernel = graph.shape(node.inputs[1])[1:]
    made = graph.shape(node.outputs[0])[2:]
    reach = [(taps - 1) * apart for taps, apart in zip(kernel, dilations, strict=True)]
    plane = math.prod(
        step * (far // step + size) for step, far, size in zip(strides[1:], reach[1:], made[1:], strict=True)
    )
    channel = (reach[0] + 1) * plane
    channels = min(inputs, max(1, _CACHED_FLOATS // channel))
    floats = 2 * kernel[1] * kernel[2] + channels * channel + _SLACK_FLOATS
    return builder.room((builder.machine.threads, -(-floats // 16) * 16))
