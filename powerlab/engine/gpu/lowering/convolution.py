"""Convolutions: a matrix product over blocks of channels, or each channel by itself."""

from __future__ import annotations

from functools import partial

import numpy as np

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.activations import finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolved import Convolution, Places, Window
from powerlab.engine.gpu.lowering.dense import FEW_ROWS, Dense, emit_dense
from powerlab.engine.gpu.lowering.methods import emit_conv
from powerlab.engine.gpu.lowering.weights import KnownWeights
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node

_LANES = 32


def lower_conv(builder: Builder, node: Node) -> None:
    """Lower a FusedConv."""
    x, made, groups = builder.image(node.inputs[0]), builder.image(node.outputs[0]), int(number(node, "group"))
    weights = builder.graph.kept_constants[node.inputs[1]]
    bias = builder.graph.constants[node.inputs[2]] if node.inputs[2] else np.zeros(made.channels, np.float32)
    window = Window(
        kernel=(weights.shape[2], weights.shape[3]),
        strides=_pair(node, "strides"),
        pads=_pair(node, "pads"),
        dilations=_pair(node, "dilations"),
    )
    known = KnownWeights(weights, bias)
    conv = Convolution(x=x, made=made, window=window, weights=known, groups=groups, finish=finish_of(node))
    source = builder.blocks(node.inputs[0])
    residual = builder.blocks(node.input(3)) if node.input(3) else None
    out = builder.new_blocks(node.outputs[0])
    emit_convolution(builder, node, (out, source, residual), conv)


def emit_convolution(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    """Append a convolution: each channel by itself, a layer of few rows, or a matrix product."""
    x, made, weights, (out, source, residual) = conv.x, conv.made, conv.weights, places
    point = conv.window.is_point and x.pixels == made.pixels == 1 and conv.groups == 1 and residual is None
    if conv.groups == x.channels == made.channels > 1:
        _emit_depthwise(builder, node, places, conv)
    elif point and x.images <= FEW_ROWS and isinstance(weights, KnownWeights):
        shape = weights.values.shape[:2]
        flat = derived(weights.values, shape, partial(np.reshape, shape=shape))
        emit_dense(builder, node, (out, source), Dense(x.images, x.channels, made.channels, flat, weights.bias))
    else:
        emit_conv(builder, node, places, conv)


def _pair(node: Node, name: str) -> tuple[int, int]:
    """Return the first two of an attribute's integers: of pads, those above and left of the image."""
    down, across, *_ = integers(node, name)
    return down, across


def _emit_depthwise(builder: Builder, node: Node, places: Places, conv: Convolution) -> None:
    made, (out, source, residual) = conv.made, places
    weights = conv.weights.each_channel(builder, node)
    biases = conv.weights.biases(builder, node, 1, made.blocks)
    function, numbers = conv.finish
    tiles = -(-made.images * made.pixels // _LANES)
    across = min(tiles, MOST_GROUPS)
    builder.emit(
        "depthwise",
        node,
        (out, source, weights, biases, residual or source),
        constants=(_LANES, function, int(residual is not None), *conv.window.kernel),
        push=(*numbers, *conv.geometry(), made.blocks),
        groups=(across, made.blocks, -(-tiles // across)),
    )
