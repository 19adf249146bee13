"""Convolutions by the method that was chosen for each."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolved import Convolution, Places
from powerlab.engine.gpu.lowering.implicit import emit_product
from powerlab.engine.gpu.lowering.weights import KnownWeights
from powerlab.engine.gpu.lowering.winograd import emit_winograd
from powerlab.engine.ir.graph import Node


def emit_conv(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    """Append a convolution the way that was chosen; where groups fill no whole blocks, all inputs count, most by 0."""
    x, made, groups = conv.x, conv.made, conv.groups
    if groups > 1 and (x.channels // groups % 4 or made.channels // groups % 4):
        conv = replace(conv, weights=conv.weights.ungrouped(groups), groups=1)
    method = builder.choose(conv.shape(residual=places[2] is not None), builder.numbers)
    if method.winograd and isinstance(conv.weights, KnownWeights):
        emit_winograd(builder, node, places, conv, method)
    else:
        emit_product(builder, node, places, conv, method)
