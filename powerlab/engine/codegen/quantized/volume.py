"""Quantized convolutions over volumes: the planes that a window sees are the channels of one image.

Planes follow on each other in memory, each with all its blocks (:mod:`.layouts`). So an image with the channels of as
many planes as a kernel is deep begins at the first of them, and images overlap. Windows at the ends of a volume see
fewer planes: those have steps of their own, with the taps that meet something.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.quantized.convolution import ByteConvolution, emit_direct
from powerlab.engine.codegen.quantized.layouts import float_planes
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.windows import PlanesSeen, planes_seen
from powerlab.engine.program.layout import BYTE_BLOCK, Halo, divide_up
from powerlab.engine.program.program import Tensor


def byte_volume_halo(graph: Graph, node: Node) -> Halo:
    """Return the zero points that a QuantVolumeConv needs around each plane of its input."""
    shape = _image_shape(graph, node)
    return halo_of(shape, shape.size)


def lower_quantized_volume_conv(builder: Builder, node: Node) -> None:
    """Lower a QuantVolumeConv: its result is bytes, or floats in blocks."""
    graph, floats = builder.graph, bool(node.attributes.get("floats"))
    every = np.asarray(graph.constants[node.inputs[1]], np.int8)
    x, residual = builder.byte_tensor(node.inputs[0]), builder.byte_tensor(node.input(4)) if node.input(4) else None
    out = builder.new_blocked(node.outputs[0]) if floats else builder.new_bytes(node.outputs[0])
    volumes, _, planes, *_ = graph.shape(node.inputs[0])
    made, rows = graph.shape(node.outputs[0])[2:4]
    stride, before = integers(node, "strides")[0], integers(node, "pads")[0]
    begin, multipliers = (graph.constants[name] for name in node.inputs[2:4])
    for seen in planes_seen(planes, made, every.shape[2], stride, before):
        weights = every[:, :, seen.taps.start : seen.taps.stop]
        left_out = every.sum(axis=(1, 2, 3, 4), dtype=np.int64) - weights.sum(axis=(1, 2, 3, 4), dtype=np.int64)
        one = ByteConvolution(
            node,
            replace(_image_shape(graph, node), images=seen.count, inputs=_windows(x, 0, seen, stride).layout.c),
            x,
            out,
            residual,
            np.concatenate(np.moveaxis(weights, 2, 0), axis=1),
            begin + int(number(node, "x_zero")) * left_out,
            multipliers,
            len(seen.taps),
        )
        places = [(volume, seen.first, seen.count) for volume in range(volumes)]
        parts = [
            replace(
                one,
                x=_windows(x, place[0] * planes, seen, stride),
                out=float_planes(out, place, rows) if floats else _images(out, made, place),
                residual=None if residual is None else _images(residual, made, place),
            )
            for place in places
        ]
        emit_direct(builder, *parts)


def _image_shape(graph: Graph, node: Node) -> ConvShape:
    """Return the sizes of the convolution over planes."""
    _, inputs, planes, *in_size = graph.shape(node.inputs[0])
    _, outputs, _, *size = graph.shape(node.outputs[0])
    (_, *strides), (_, *dilations), (_, *pads) = (integers(node, name)[:3] for name in ("strides", "dilations", "pads"))
    kernel = graph.shape(node.inputs[1])[3:]
    return ConvShape(
        images=planes,
        inputs=inputs,
        outputs=outputs,
        kernel=(kernel[0], kernel[1]),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        pads=(pads[0], pads[1]),
        in_size=(in_size[0], in_size[1]),
        size=(size[0], size[1]),
    )


def _windows(x: Tensor, first: int, seen: PlanesSeen, stride: int) -> Tensor:
    """Return what windows see of a volume, whose first plane is one of all, as images that overlap."""
    layout, taps = x.layout, len(seen.taps)
    channels = layout.c if layout.pixel == 1 else taps * divide_up(layout.c, BYTE_BLOCK) * BYTE_BLOCK
    joined = replace(layout, n=seen.count, c=channels, blocks=taps * layout.blocks, image=stride * layout.image)
    return x.seen_as(joined, (first + seen.plane) * layout.image)


def _images(tensor: Tensor, planes: int, place: tuple[int, int, int]) -> Tensor:
    """Return planes of a volume of bytes: of the volume, from the first on, so many."""
    volume, first, count = place
    return tensor.seen_as(replace(tensor.layout, n=count), (volume * planes + first) * tensor.layout.image)
