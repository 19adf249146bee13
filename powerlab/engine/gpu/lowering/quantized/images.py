"""Operators on bytes: images in blocks of 4 channels a word, with the arithmetic of the processor's kernels."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number, number_or
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.packing import per_output
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_HIGHEST = 255.0


def lower_quantize(builder: Builder, node: Node) -> None:
    """Lower a Quantize."""
    x, zero = builder.image(node.inputs[0]), number(node, "zero")
    low, high = (number_or(node, name, at - zero) for name, at in (("low", 0.0), ("high", _HIGHEST)))
    source = builder.blocks(node.inputs[0])
    push = (number(node, "step"), low, high, int(zero), x.vectors)
    builder.emit_flat("quantize", node, (builder.new_bytes(node.outputs[0]), source), x.vectors, push=push)


def lower_dequantize(builder: Builder, node: Node) -> None:
    """Lower a Dequantize."""
    x = builder.image(node.inputs[0])
    push = (number(node, "step"), int(number(node, "zero")), x.vectors)
    places = (builder.new_blocks(node.outputs[0]), builder.bytes(node.inputs[0]))
    builder.emit_flat("dequantize", node, places, x.vectors, push=push)


def lower_quantized_pool(builder: Builder, node: Node) -> None:
    """Lower a QuantPool: maxima, averages, or the average of each image."""
    x, made, kind = builder.image(node.inputs[0]), builder.image(node.outputs[0]), str(node.attributes["kind"])
    window: tuple[int, ...] = (x.height, x.width, 1, 1, 0, 0)
    if kind != "global_average":
        window = (*integers(node, "kernel"), *integers(node, "strides"), *integers(node, "pads")[:2])
    counts = kind == "average" and bool(node.attributes["count_include_pad"])
    builder.emit_flat(
        "quant_pool",
        node,
        (builder.new_bytes(node.outputs[0]), builder.bytes(node.inputs[0])),
        made.vectors,
        constants=(int(kind != "max"), int(counts)),
        push=(
            *(number(node, "low"), number(node, "high"), number_or(node, "x_ratio", 0.0)),
            *(int(number_or(node, "x_zero", 0)), int(number(node, "zero"))),
            *(x.images * x.blocks, x.height, x.width, made.height, made.width, *window),
        ),
    )


def lower_quantized_add(builder: Builder, node: Node) -> None:
    """Lower a QuantAdd: a sum of two, or one in another scale."""
    places = [builder.bytes(name) for name in node.inputs]
    places.insert(0, builder.new_bytes(node.outputs[0]))
    ratios = (number_or(node, "x_ratio", 0.0), number_or(node, "y_ratio", 0.0))
    zeros = tuple(int(number_or(node, name, 0)) for name in ("x_zero", "y_zero", "zero"))
    _emit_add(builder, node, places, (*ratios, *zeros), (0, builder.image(node.inputs[0])))


def lower_quantized_concat(builder: Builder, node: Node) -> None:
    """Lower a QuantConcat: parts of one scale.

    Raises:
        PowerlabError: a part but the last one fills no whole blocks of channels.
    """
    out, first = builder.new_bytes(node.outputs[0]), 0
    for name in node.inputs:
        image = builder.image(name)
        if image.channels % 4 and name != node.inputs[-1]:
            raise PowerlabError(f"{node} joins channels that are no multiple of 4, which a GPU does not in int8 yet.")
        zero = int(number(node, "zero"))
        _emit_add(builder, node, [out, builder.bytes(name)], (1.0, 0.0, zero, 0, zero), (first, image))
        first += image.blocks


def lower_quantized_scale(builder: Builder, node: Node) -> None:
    """Lower a QuantScale: one factor and one shift a channel."""
    x = builder.image(node.inputs[0])
    of_channels = [
        builder.constant(per_output(builder.graph.constants[name], 1, x.blocks), floats=True)
        for name in node.inputs[1:]
    ]
    source, out = builder.bytes(node.inputs[0]), builder.new_bytes(node.outputs[0])
    ends = (number(node, "low"), number(node, "high"), int(number_or(node, "zero", 0)))
    push = (*ends, x.vectors, x.pixels, x.blocks)
    builder.emit_flat("quant_scale", node, (out, source, *of_channels), x.vectors, push=push)


def lower_quantized_resize(builder: Builder, node: Node) -> None:
    """Lower a QuantResize by whole factors."""
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    places = (builder.new_bytes(node.outputs[0]), builder.bytes(node.inputs[0]))
    sizes = (x.images * x.blocks, x.height, x.width, *integers(node, "factors"))
    builder.emit_flat("quant_resize", node, places, made.vectors, push=sizes)


def lower_quantized_view(builder: Builder, node: Node) -> None:
    """Lower a QuantView: images of one pixel are rows of channels."""
    builder.put_bytes(node.outputs[0], builder.bytes(node.inputs[0]))


def _emit_add(
    builder: Builder, node: Node, places: Sequence[Storage], numbers: tuple[float, ...], part: tuple[int, Image]
) -> None:
    """Append a dispatch that makes some blocks of the result.

    Args:
        builder: gets it.
        node: what is computed.
        places: result, and one or two tensors of bytes.
        numbers: ratios and zero points of both, and the zero point of the result.
        part: the first block that is made, and the image that the tensors are.
    """
    first, image = part
    builder.emit_flat(
        "quant_add",
        node,
        (*places[:2], places[-1]),
        image.vectors,
        constants=(len(places) - 2,),
        push=(
            *(number(node, "low"), number(node, "high"), *numbers),
            *(image.images, image.pixels, image.blocks, builder.image(node.outputs[0]).blocks, first),
        ),
    )
