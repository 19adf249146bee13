"""Transposed convolutions: one convolution a phase, which writes its pixels where they belong in the result."""

from __future__ import annotations

import numpy as np
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import clamp_fields, integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.convolutions.phases import AxisPhase, phases
from powerlab.engine.codegen.pack import fill_channels, merge_groups, mergeable_groups, pack_depthwise
from powerlab.engine.ir.constants import value_of
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import NO_HALO, blocked, divide_up
from powerlab.engine.program.program import Floats, Tensor


def lower_conv_transpose(builder: Builder, node: Node) -> None:
    """Lower a FusedConvTranspose."""
    x = builder.blocked(node.inputs[0])
    out = builder.new_blocked(node.outputs[0])
    if out.layout.halo != NO_HALO:
        builder.emit("frame", f"{node.outputs[0]} frame", out, x)
    weights, bias = builder.constant(node.inputs[1]), builder.optional_constant(node.input(2))
    groups = int(number(node, "group"))
    depthwise = groups == x.layout.c == out.layout.c > 1
    emit = _emit_depthwise if depthwise else _emit_direct
    for rows, columns in phases(builder.graph, node):
        fields = {
            "kernel_h": max(1, len(rows.taps)),
            "kernel_w": max(1, len(columns.taps)),
            "stride_h": 1,
            "stride_w": 1,
            "dilation_h": rows.dilation,
            "dilation_w": columns.dilation,
            "pad_top": rows.pad,
            "pad_left": columns.pad,
            **clamp_fields(node),
        }
        own = _own_pixels(node, out, rows, columns)
        emit(
            builder, node, Direct(x, own, None, _own_taps(weights, rows, columns), bias, groups, x.layout.pixel, fields)
        )


def _own_pixels(node: Node, out: Tensor, rows: AxisPhase, columns: AxisPhase) -> Tensor:
    """Return the pixels of a phase, a stride apart in the result."""
    layout = out.layout
    stride_h, stride_w = integers(node, "strides")
    strided = replace(
        layout,
        h=rows.count,
        w=columns.count,
        row=layout.row * stride_h,
        pixel=layout.pixel * stride_w,
        halo=NO_HALO,
    )
    return out.seen_as(strided, layout.start + rows.first * layout.row + columns.first * layout.pixel)


def _own_taps(weights: Floats, rows: AxisPhase, columns: AxisPhase) -> Floats:
    """Return the kernels of a phase; zeros where no tap reaches it, so that it gets its bias alone."""
    if not rows.taps or not columns.taps:
        shape = (max(1, len(rows.taps)), max(1, len(columns.taps)))
        return np.zeros((*weights.shape[:2], *shape), np.float32)
    return np.ascontiguousarray(weights[:, :, _as_slice(rows.taps), _as_slice(columns.taps)])


def _as_slice(taps: tuple[int, ...]) -> slice:
    """Return taps, which are equally far apart and come from the last to the first, as numpy takes them fastest."""
    step = taps[1] - taps[0] if len(taps) > 1 else -1
    end = taps[-1] + step
    return slice(taps[0], end if end >= 0 else None, step)


def _emit_direct(builder: Builder, node: Node, conv: Direct) -> None:
    width, groups, weights = builder.tier.vector_width, conv.groups, value_of(conv.known_weights)
    if groups > 1:
        merged = mergeable_groups(weights.shape[1], weights.shape[0] // groups, groups, width)
        weights = merge_groups(weights, groups, merged)
        groups //= merged
    layout, source = conv.out.layout, conv.x.layout
    work = Work(
        groups=groups,
        in_blocks=divide_up(weights.shape[1], width),
        lanes=width,
        taps=weights.shape[2] * weights.shape[3],
        out_blocks=divide_up(weights.shape[0] // groups, width),
        rows=layout.n * layout.h,
        columns=layout.w,
        x_bytes=4 * source.n * source.c * source.h * source.w,
    )
    cut = partition(work, builder.tier, builder.threads, builder.machine.caches)
    merged_conv = replace(conv, weights=weights, groups=groups)
    emit_direct(builder, node, merged_conv, Choice(algorithm="direct", **asdict(cut)))


def _emit_depthwise(builder: Builder, node: Node, conv: Direct) -> None:
    """Compute a phase by itself and put its pixels in their places: the kernel writes whole rows."""
    width, layout = builder.tier.vector_width, conv.out.layout
    made = builder.in_arena(blocked((layout.n, layout.c, layout.h, layout.w), width))
    builder.emit(
        "conv_depthwise",
        node,
        made,
        conv.x,
        weights=pack_depthwise(value_of(conv.known_weights), width),
        bias=fill_channels(conv.bias, layout.c, layout.blocks, width),
        **conv.fields,
    )
    builder.emit("spread", f"{node.outputs[0]} pixels", conv.out, made)
