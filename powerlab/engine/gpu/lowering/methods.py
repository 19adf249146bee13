"""Convolutions by the method that was chosen for each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolved import Convolution, Floats, Places
from powerlab.engine.gpu.lowering.implicit import emit_product
from powerlab.engine.gpu.lowering.winograd import emit_winograd
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node


def emit_conv(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    """Append a convolution the way that was chosen; where groups fill no whole blocks, all inputs count, most by 0."""
    x, made, groups, weights = conv.x, conv.made, conv.groups, conv.weights
    if groups > 1 and (x.channels // groups % 4 or made.channels // groups % 4):
        whole = (made.channels, x.channels, *conv.window.kernel)
        conv = replace(conv, weights=derived(weights, whole, partial(_ungrouped, groups=groups)), groups=1)
    method = builder.choose(conv.shape(residual=places[2] is not None), builder.numbers)
    if method.winograd:
        emit_winograd(builder, node, places, conv, method)
    else:
        emit_product(builder, node, places, conv, method)


def _ungrouped(weights: Floats, groups: int) -> Floats:
    """Return weights of groups as those of all channels, 0 where they are of another group."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((weights.shape[0], inputs * groups, *weights.shape[2:]), np.float32)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole
