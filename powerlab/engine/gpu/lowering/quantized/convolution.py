"""Convolutions of bytes, and layers of bytes that are fully connected."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.codegen.attributes import integers, number, number_or
from powerlab.engine.gpu.activations import finish_by_function
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image, volume_of
from powerlab.engine.gpu.lowering.convolved import Window
from powerlab.engine.gpu.lowering.packing import ungrouped
from powerlab.engine.gpu.lowering.quantized.products import ByteConvolution, emit_depthwise, emit_product
from powerlab.engine.gpu.lowering.volume import volume_window
from powerlab.engine.ir.graph import Node


def lower_quantized_conv(builder: Builder, node: Node) -> None:
    """Lower a QuantConv, also one of rows that are fully connected; its result is bytes, or numbers of the network."""
    weights = np.asarray(builder.graph.constants[node.inputs[1]], np.int8)
    weights = weights.reshape(*weights.shape, *(1,) * (4 - weights.ndim))
    window = _window(node, (weights.shape[2], weights.shape[3]))
    x, made = (builder.image(name) for name in (node.inputs[0], node.outputs[0]))
    conv = _convolution(builder, node, (x, made), window, weights)
    if conv.groups == conv.x.channels == conv.made.channels > 1:
        emit_depthwise(builder, conv)
        return
    of_group = (conv.x.channels // conv.groups, conv.made.channels // conv.groups)
    if conv.groups > 1 and any(channels % 4 for channels in of_group):
        conv = replace(conv, weights=ungrouped(conv.weights, conv.groups), groups=1)
    emit_product(builder, conv)


def lower_quantized_volume_conv(builder: Builder, node: Node) -> None:
    """Lower a QuantVolumeConv.

    Raises:
        PowerlabError: the volume has more planes or rows than the kernels count.
    """
    weights = np.asarray(builder.graph.constants[node.inputs[1]], np.int8)
    outputs, inputs, planes, rows, columns = weights.shape
    x, made = (volume_of(builder.graph.shape(name)) for name in (node.inputs[0], node.outputs[0]))
    window = volume_window(node, x, (planes, rows, columns))
    flat = weights.reshape(outputs, inputs, planes * rows, columns)
    emit_product(builder, _convolution(builder, node, (x, made), window, flat))


def _convolution(
    builder: Builder, node: Node, images: tuple[Image, Image], window: Window, weights: NDArray[np.int8]
) -> ByteConvolution:
    floats = bool(node.attributes.get("floats"))
    begin, multipliers = (builder.graph.constants[name] for name in node.inputs[2:4])
    function, (*_, alpha, beta) = finish_by_function(node) if node.attributes.get("function") else (0, (0.0, 0.0))
    ends = (number(node, "low"), number(node, "high"), number_or(node, "slope", 1.0), alpha, beta)
    zeros = tuple(int(number_or(node, name, 0)) for name in ("x_zero", "y_zero", "zero"))
    return ByteConvolution(
        node=node,
        x=images[0],
        made=images[1],
        window=window,
        weights=weights,
        begin=begin,
        multipliers=multipliers,
        groups=int(number_or(node, "group", 1)),
        floats=floats,
        function=function,
        numbers=(*ends, number_or(node, "y_ratio", 0.0)),
        zeros=zeros,
        source=builder.bytes(node.inputs[0]),
        residual=builder.bytes(node.input(4)) if node.input(4) else None,
        out=builder.new_blocks(node.outputs[0]) if floats else builder.new_bytes(node.outputs[0]),
    )


def _window(node: Node, kernel: tuple[int, int]) -> Window:
    """Return how a convolution moves; a layer that is fully connected has no such attributes."""
    given = {name: integers(node, name)[:2] for name in ("strides", "pads", "dilations") if name in node.attributes}
    return Window(kernel=kernel, **given)  # type: ignore[arg-type]
