"""Convolutions of bytes, and layers of bytes that are fully connected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.activations import finish_by_function
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.byte_weights import by_channel, pack, per_output, ungrouped
from powerlab.engine.gpu.lowering.pointwise import emit_finish
from powerlab.engine.gpu.lowering.quantized import value_or
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.ir.graph import Node

_LANES, _PIXELS = 32, 4
_WINDOW = (("strides", 1), ("pads", 0), ("dilations", 1))


def lower_quantized_conv(builder: Builder, node: Node) -> None:
    """Lower a QuantConv, also one of rows that are fully connected.

    Raises:
        PowerlabError: bytes end in a function.
    """
    function, floats = str(node.attributes.get("function", "")), bool(node.attributes.get("floats"))
    if function and not floats:
        raise PowerlabError(f"{node} ends in {function}, which the engine does not in int8 on a GPU yet; use the cpu.")
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    weights = np.asarray(builder.graph.constants[node.inputs[1]], np.int8)
    weights = weights.reshape(*weights.shape, *(1,) * (4 - weights.ndim))
    begin, multipliers = (builder.graph.constants[name] for name in node.inputs[2:4])
    groups = int(value_or(node, "group", 1))
    residual = builder.bytes(node.input(4)) if node.input(4) else None
    source = builder.bytes(node.inputs[0])
    out = builder.new_blocks(node.outputs[0]) if floats else builder.new_bytes(node.outputs[0])
    ends = (number(node, "low"), number(node, "high"), value_or(node, "slope", 1.0), value_or(node, "y_ratio", 0.0))
    zeros = tuple(int(value_or(node, name, 0)) for name in ("x_zero", "y_zero", "zero"))
    geometry = _geometry(node, x, made, weights)
    if groups == x.channels == made.channels > 1 and not floats:
        constants = [
            builder.constant(by_channel(weights), integers=True),
            builder.constant(per_output(begin, 1, made.blocks), integers=True),
            builder.constant(per_output(multipliers, 1, made.blocks), floats=True),
        ]
        push = (*ends, *geometry, made.blocks, *zeros)
        places = (out, source, *constants, residual or source)
        flags = (int(residual is not None),)
        builder.emit_flat("quant_depthwise", node, places, made.vectors, constants=flags, push=push)
        return
    if groups > 1 and (x.channels // groups % 4 or made.channels // groups % 4):
        weights, groups = ungrouped(weights, groups), 1
    in_blocks, out_blocks = (-(-(one.channels // groups) // 4) for one in (x, made))
    tiles, pixels = -(-out_blocks // 2), made.images * made.pixels
    pixel_tiles = -(-pixels // (_LANES * _PIXELS))
    across = min(pixel_tiles, MOST_GROUPS)
    unused = builder.room(4)
    builder.emit(
        "quant_conv_dot" if builder.target.dot_product else "quant_conv",
        node,
        (
            *((unused, out) if floats else (out, unused)),
            source,
            builder.constant(pack(weights, groups), integers=True),
            builder.constant(per_output(begin, groups, 2 * tiles), integers=True),
            builder.constant(per_output(multipliers, groups, 2 * tiles), floats=True),
            residual or source,
        ),
        constants=(_LANES, _PIXELS, int(residual is not None), int(floats), int(builder.target.broadcasts)),
        push=(*ends, *geometry, groups, in_blocks, out_blocks, *zeros),
        groups=(across, groups * tiles, -(-pixel_tiles // across)),
        written=2,
    )
    if function:
        emit_finish(builder, node, out, finish_by_function(node))


def _geometry(node: Node, x: Image, made: Image, weights: NDArray[Any]) -> tuple[int, ...]:
    window = [integers(node, name) if name in node.attributes else (usual,) * 2 for name, usual in _WINDOW]
    (stride_h, stride_w), (pad_h, pad_w, *_), (dilation_h, dilation_w) = window
    sizes = (made.images, x.height, x.width, made.height, made.width, *weights.shape[2:])
    return (*sizes, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w)
