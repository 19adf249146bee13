"""Convolutions over volumes: the kernels of those over images, whose windows also move across planes."""

from __future__ import annotations

from functools import partial

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers
from powerlab.engine.gpu.activations import Finish, finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image, volume_of
from powerlab.engine.gpu.lowering.convolved import AcrossPlanes, Convolution, Places, Window
from powerlab.engine.gpu.lowering.methods import emit_conv
from powerlab.engine.gpu.lowering.weights import KnownWeights
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node

_MOST_PLACES = 1 << 15
"""Planes or rows, pads included: where a window begins has 16 bits in ``shaders/corners.glsl``, with a sign."""


def lower_conv_volume(builder: Builder, node: Node) -> None:
    """Lower a FusedVolumeConv.

    Raises:
        PowerlabError: the volume has more planes or rows than the kernels count.
    """
    source = builder.blocks(node.inputs[0])
    emit_conv_volume(builder, node, (builder.new_blocks(node.outputs[0]), source, None), finish_of(node))


def emit_conv_volume(builder: Builder, node: Node, places: Places, finish: Finish) -> None:
    """Append the dispatches of a FusedVolumeConv, to whose result a tensor of its shape may be added.

    Args:
        builder: gets them.
        node: what is computed.
        places: result, volume, and what is added or None.
        finish: how the kernels end.

    Raises:
        PowerlabError: the volume has more planes or rows than the kernels count.
    """
    x, made = (volume_of(builder.graph.shape(name)) for name in (node.inputs[0], node.outputs[0]))
    weights = builder.graph.kept_constants[node.inputs[1]]
    outputs, inputs, planes, rows, columns = weights.shape
    flat = (outputs, inputs, planes * rows, columns)  # taps in the order in which kernels take them
    bias = builder.graph.constants[node.input(2)] if node.input(2) else np.zeros(outputs, np.float32)
    conv = Convolution(
        x=x,
        made=made,
        window=volume_window(node, x, (planes, rows, columns)),
        weights=KnownWeights(derived(weights, flat, partial(np.reshape, shape=flat)), bias),
        finish=finish,
    )
    emit_conv(builder, node, places, conv)


def volume_window(node: Node, x: Image, kernel: tuple[int, int, int]) -> Window:
    """Return how a convolution moves over a volume.

    Args:
        node: has its strides, pads and dilations, planes before rows before columns.
        x: the volume.
        kernel: planes, rows and columns.

    Raises:
        PowerlabError: the volume has more planes or rows than the kernels count.
    """
    (stride, *strides), (dilation, *dilations) = (integers(node, name) for name in ("strides", "dilations"))
    pad, above, left, behind, below, _ = integers(node, "pads")
    if max(x.planes + pad + behind, x.height + above + below) > _MOST_PLACES:
        raise PowerlabError(
            f"{node} convolves a volume of {x.planes} planes of {x.height} rows, and on a GPU the engine does up to "
            f"{_MOST_PLACES} of each with their padding; use the device cpu."
        )
    planes, rows, columns = kernel
    return Window(
        kernel=(rows, columns),
        strides=(strides[0], strides[1]),
        pads=(above, left),
        dilations=(dilations[0], dilations[1]),
        across=AcrossPlanes(kernel=planes, stride=stride, pad=pad, dilation=dilation),
    )
