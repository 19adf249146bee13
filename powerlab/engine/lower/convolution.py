"""Convolutions: the depthwise ones have a kernel of their own, all others become views on ``conv_direct``."""

from __future__ import annotations

from typing import Any

from powerlab.engine.graph import Graph, Node
from powerlab.engine.layout import Halo, blocked, divide_up, shape4
from powerlab.engine.lower.attributes import clamp_fields, integers, number
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.direct import Direct, emit_direct
from powerlab.engine.lower.winograd import DIRECT, Shape, choose_tile, emit_winograd
from powerlab.engine.pack import fill_channels, fold_row, merge_groups, mergeable_groups, pack_depthwise
from powerlab.engine.program import Floats, Tensor
from powerlab.engine.tiers import Tier


def needed_halo(graph: Graph, node: Node, tier: Tier) -> Halo:
    """Return the zeros a FusedConv needs around the planes of its input."""
    _, _, height, width = shape4(graph.shape(node.inputs[0]))
    _, _, out_height, out_width = shape4(graph.shape(node.outputs[0]))
    kernel_h, kernel_w = graph.shape(node.inputs[1])[2:]
    stride_h, stride_w = integers(node, "strides")
    dilation_h, dilation_w = integers(node, "dilations")
    top, left = integers(node, "pads")[:2]
    if tile := _winograd_tile(graph, node, tier):
        # Tiles reach past the last output: whole ones are read.
        out_height, out_width = divide_up(out_height, tile) * tile, divide_up(out_width, tile) * tile
    last_row = (out_height - 1) * stride_h + (kernel_h - 1) * dilation_h - top
    last_column = (out_width - 1) * stride_w + (kernel_w - 1) * dilation_w - left
    return Halo(top, left, max(0, last_row - height + 1), max(0, last_column - width + 1))


def lower_conv(builder: Builder, node: Node) -> None:
    """Lower a FusedConv."""
    weights, bias = builder.constant(node.inputs[1]), builder.optional_constant(node.input(2))
    fields = _fields(node, weights)
    name = node.inputs[0]
    channels = builder.graph.shape(name)[1]
    groups = int(number(node, "group"))
    if groups == channels == weights.shape[0] and groups > 1:
        x = builder.blocked(name)
        out, residual = _result(builder, node)
        width = builder.tier.vector_width
        packed_bias = fill_channels(bias, channels, out.layout.blocks, width)
        packed = pack_depthwise(weights, width)
        builder.emit("conv_depthwise", node, out, x, residual, weights=packed, bias=packed_bias, **fields)
        return
    if tile := _winograd_tile(builder.graph, node, builder.tier):
        x = builder.blocked(name)
        operands = (x, *_result(builder, node))
        emit_winograd(builder, node, operands, weights, bias=bias, fields=fields, tile=tile)
        return
    few_channels = channels * 2 <= builder.tier.vector_width
    if few_channels and groups == 1 and fields["dilation_w"] == 1 and builder.is_external(name):
        x = _interleaved(builder, node)
        folded = fold_row(weights)
        out, residual = _result(builder, node)
        conv = Direct(x, out, residual, folded, bias, 1, folded.shape[1], {**fields, "kernel_w": 1})
    else:
        conv = _blocked(builder, node, weights, bias, groups)
    emit_direct(builder, node, conv)


def _winograd_tile(graph: Graph, node: Node, tier: Tier) -> int:
    """Return the tile of the Winograd algorithm to use for a FusedConv, or ``DIRECT``."""
    outputs, inputs, *kernel = graph.shape(node.inputs[1])
    unit_steps = integers(node, "strides") == integers(node, "dilations") == (1, 1)
    if kernel != [3, 3] or not unit_steps or number(node, "group") != 1:
        return DIRECT
    images, _, rows, columns = shape4(graph.shape(node.outputs[0]))
    return choose_tile(Shape(images, inputs, outputs, rows, columns), tier)


def _fields(node: Node, weights: Floats) -> dict[str, Any]:
    stride_h, stride_w = integers(node, "strides")
    dilation_h, dilation_w = integers(node, "dilations")
    top, left = integers(node, "pads")[:2]
    return {
        "kernel_h": weights.shape[2],
        "kernel_w": weights.shape[3],
        "stride_h": stride_h,
        "stride_w": stride_w,
        "dilation_h": dilation_h,
        "dilation_w": dilation_w,
        "pad_top": top,
        "pad_left": left,
        **clamp_fields(node),
    }


def _result(builder: Builder, node: Node) -> tuple[Tensor, Tensor | None]:
    residual = builder.blocked(node.input(3)) if node.input(3) else None
    return builder.new_blocked(node.outputs[0]), residual


def _interleaved(builder: Builder, node: Node) -> Tensor:
    """Return an input with few channels as [n][h][w][c], so that no lane is wasted on filling up a block."""
    name = node.inputs[0]
    shape = shape4(builder.graph.shape(name))
    x = builder.in_arena(blocked(shape, shape[1], needed_halo(builder.graph, node, builder.tier)))
    builder.emit("reorder_to_blocks", f"{name} interleaved", x, builder.external(name))
    return x


def _blocked(builder: Builder, node: Node, weights: Floats, bias: Floats | None, groups: int) -> Direct:
    width = builder.tier.vector_width
    x = builder.blocked(node.inputs[0])
    out, residual = _result(builder, node)
    if groups > 1:
        merged = mergeable_groups(weights.shape[1], weights.shape[0] // groups, groups, width)
        weights = merge_groups(weights, groups, merged)
        groups //= merged
    if weights.shape[2:] == (1, 1) and integers(node, "strides") == (1, 1):
        x, out, residual = _flattened(x, out, residual)
    return Direct(x, out, residual, weights, bias, groups, width, _fields(node, weights))


def _flattened(x: Tensor, out: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return all operands as one long row, where all of them allow it: fewer tiles are cut short."""
    flat_x, flat_out = x.layout.flat(), out.layout.flat()
    flat_residual = residual.layout.flat() if residual else None
    if flat_x is None or flat_out is None:
        return x, out, residual
    if residual is None:
        return x.seen_as(flat_x), out.seen_as(flat_out), None
    if flat_residual is None:
        return x, out, residual
    return x.seen_as(flat_x), out.seen_as(flat_out), residual.seen_as(flat_residual)
