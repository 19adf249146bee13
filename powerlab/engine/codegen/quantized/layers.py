"""Quantized operators without weights, and the ways from floats to bytes and back."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import function_fields, integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.concat_in_place import joins_blocks
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.pool import window_fields
from powerlab.engine.codegen.quantized.layouts import byte_fields, signed_bytes, volumes
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import BYTE_BLOCK, NO_HALO, shape4
from powerlab.engine.program.program import Tensor


def lower_quantize(builder: Builder, node: Node) -> None:
    """Lower a Quantize: floats in planes or blocks become bytes; those in blocks may be multiplied before."""
    name, whole = node.inputs[0], {"low": -number(node, "zero"), "high": 255 - number(node, "zero")}
    node = replace(node, attributes={**whole, **node.attributes})
    one_pixel = math.prod(shape4(builder.graph.shape(name))[2:]) == 1
    out = builder.new_bytes(node.outputs[0])
    whole_blocks = out.layout.pixel > 1  # else a pixel has one word
    factors = builder.blocked(node.inputs[1]) if node.input(1) else None
    lies_in_blocks = builder.is_blocked(name) and not builder.is_planar(name)
    in_blocks = factors is not None or (whole_blocks and lies_in_blocks and not one_pixel)
    x = builder.blocked(name) if in_blocks else builder.planes(name)
    rows = one_pixel and whole_blocks and out.layout.halo == NO_HALO
    family = "quantize_blocks" if in_blocks else "quantize_rows" if rows else "quantize_planes"
    for frames, floats in volumes(builder.graph.shape(name), out, x):
        fields = {**byte_fields(node, frames, builder.tier.byte_form), "alpha": number(node, "step")}
        builder.emit(family, node, frames, floats, factors, **fields)


def lower_quantized_concat(builder: Builder, node: Node) -> None:
    """Lower a QuantConcat: what does not lie in the whole already is copied there."""
    out, first_block = builder.new_bytes(node.outputs[0]), 0
    if not joins_blocks(builder.graph, node, BYTE_BLOCK):
        first = 0
        for name in node.inputs:
            x = builder.byte_tensor(name)
            _move_channels(builder, node, (out, first), (x, 0), x.layout.c)
            first += x.layout.c
        return
    for name in node.inputs:
        x = builder.byte_tensor(name)
        layout = replace(out.layout, c=x.layout.c, blocks=x.layout.blocks)
        part = out.seen_as(layout, first_block * out.layout.plane)
        if x != part:
            zero = int(number(node, "zero"))
            fields = {**byte_fields(node, part, builder.tier.byte_form), "numbers": [zero, 0, zero], "beta": 1.0}
            builder.emit("add_u8", node, part, x, **fields)
        first_block += x.layout.blocks


def lower_quantized_slice(builder: Builder, node: Node) -> None:
    """Lower a QuantSlice: some channels of an image."""
    x, out = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0])
    _move_channels(builder, node, (out, 0), (x, int(number(node, "first"))), out.layout.c)


def _move_channels(builder: Builder, node: Node, to: tuple[Tensor, int], x: tuple[Tensor, int], count: int) -> None:
    """Append the step that moves channels of one tensor to those of another, from the numbers beside them on."""
    fields = byte_fields(node, to[0], builder.tier.byte_form)
    builder.emit("move_channels_u8", node, to[0], x[0], **{**fields, "numbers": [x[1], to[1], count]})


def lower_quantized_scale(builder: Builder, node: Node) -> None:
    """Lower a QuantScale."""
    x, out = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0])
    numbers = (builder.constant(name) for name in node.inputs[1:])
    factors, shifts = (fill_channels(one, x.layout.c, x.layout.blocks, BYTE_BLOCK) for one in numbers)
    fields = byte_fields(node, out, builder.tier.byte_form)
    builder.emit("scale_shift_u8", node, out, x, weights=factors, bias=shifts, **fields)


def lower_quantized_lookup(builder: Builder, node: Node) -> None:
    """Lower a QuantLookup: its table goes from bytes as they are stored to such."""
    x, out, form = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0]), builder.tier.byte_form
    table = builder.graph.constants[node.inputs[1]]
    if signed_bytes(form):
        table = np.roll(table, len(table) // 2) ^ 128
    builder.emit("lookup_u8", node, out, x, weights=table.view(np.float32), **byte_fields(node, out, form))


def lower_quantized_resize(builder: Builder, node: Node) -> None:
    """Lower a QuantResize: its factors stand in the step's strides."""
    x, out = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0])
    stride_h, stride_w = integers(node, "factors")
    fields = {**byte_fields(node, out, builder.tier.byte_form), "stride_h": stride_h, "stride_w": stride_w}
    builder.emit("resize_nearest_u8", node, out, x, **fields)


def lower_dequantize(builder: Builder, node: Node) -> None:
    """Lower a Dequantize: bytes become floats in blocks, of which a function may be made."""
    x, out = builder.byte_tensor(node.inputs[0]), builder.new_blocked(node.outputs[0])
    numbers = [0, 0, int(number(node, "zero"))]
    for frames, floats in volumes(builder.graph.shape(node.inputs[0]), x, out):
        fields = {"numbers": numbers, "offset": number(node, "step"), **function_fields(node)}
        builder.emit("dequantize_blocks", node, floats, frames, **fields)


def lower_quantized_add(builder: Builder, node: Node) -> None:
    """Lower a QuantAdd: two tensors of bytes become their sum, or one gets another scale."""
    x, *others = (builder.byte_tensor(name) for name in node.inputs)
    out = builder.new_bytes(node.outputs[0])
    builder.emit("add_u8", node, out, x, *others, **byte_fields(node, out, builder.tier.byte_form))


def lower_quantized_pool(builder: Builder, node: Node) -> None:
    """Lower a QuantPool."""
    x, out, kind = builder.byte_tensor(node.inputs[0]), builder.new_bytes(node.outputs[0]), str(node.attributes["kind"])
    fields = byte_fields(node, out, builder.tier.byte_form)
    if kind != "global_average":
        fields |= window_fields(node)
    if kind == "average":
        fields["count_padding"] = int(number(node, "count_include_pad"))
    builder.emit(f"pool_{kind}_u8", node, out, x, **fields)


def lower_quantized_view(builder: Builder, node: Node) -> None:
    """Lower a QuantView: images of one pixel lie like rows of channels."""
    x = builder.byte_tensor(node.inputs[0])
    n, c, h, w = shape4(builder.graph.shape(node.outputs[0]))
    builder.alias_bytes(node.outputs[0], x.seen_as(replace(x.layout, n=n, c=c, h=h, w=w)))
