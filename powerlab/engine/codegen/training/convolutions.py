"""Convolutions whose weights change: forwards, backwards to their images, and the gradients of their weights."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import (
    direct_works,
    flattened,
    group_parts,
    planes,
)
from powerlab.engine.codegen.convolutions.algorithms.direct_pairs import PairConvolution
from powerlab.engine.codegen.convolutions.algorithms.fields import kernel_fields
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.algorithms.winograd import WinogradConvolution
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import partition
from powerlab.engine.codegen.convolutions.phases import AxisPhase, phases
from powerlab.engine.codegen.moving_weights import (
    Moving,
    MovingKernels,
    pack_depthwise_kernels,
    packed_bias,
)
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.training.choosing import direct_choice, phase_shape
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.computed_weights import in_groups
from powerlab.engine.program.layout import NO_HALO, blocked
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Tensor
from powerlab.engine.target.tiers import BF16

_OPEN = dict(zip(("low", "high"), NO_CLAMP, strict=True)) | {"slope": 1.0}
"""No activation."""

_TOGETHER = 4
"""Input blocks that the kernel ``conv_weight_gradient`` takes together of 1x1 convolutions, and output blocks of any,
at most: its scratch has room for as many."""

_MOST_BLOCKS = 6

_PIECE_PAIRS = 64
"""Pairs of pixels that it brings into bfloat16 together: one block of inputs, and the blocks of outputs."""


def lower_computed_conv(builder: Builder, node: Node) -> None:
    """Lower a ComputedConv."""
    shape, choice = builder.chosen(node)
    kernels = MovingKernels(in_groups(builder.general(node.inputs[1]), shape.groups), _bias(builder, node))
    x, out = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0])
    conv = Moving(x, out, kernels, {**kernel_fields(shape), **_OPEN})
    if shape.depthwise:
        _emit_depthwise(builder, node, conv)
    else:
        _emit_chosen(builder, node, shape, conv, choice)


def _emit_chosen(builder: Builder, node: Node, shape: ConvShape, conv: Moving, choice: Choice) -> None:
    algorithm = ALGORITHMS[choice.algorithm]
    if isinstance(algorithm, WinogradConvolution | PairConvolution):
        algorithm.emit_moving(builder, node, shape, choice, conv)
    else:
        _emit_parts(builder, node, shape, conv, choice)


def _emit_parts(builder: Builder, node: Node, shape: ConvShape, conv: Moving, choice: Choice) -> None:
    """Emit ``conv_direct`` for each part of the groups of ``shape``."""
    width, groups = builder.tier.vector_width, shape.groups
    x, out = conv.x, conv.out
    if shape.taps == 1 and shape.strides == (1, 1) and shape.pads == (0, 0):
        x, out, _ = flattened(x, out, None)
    for part, work in zip(group_parts(shape, width), direct_works(shape, builder.tier), strict=True):
        read, made = part.channels(shape.inputs // groups), part.channels(shape.outputs // groups)
        cut = choice
        if part.first:
            parts = partition(work, builder.tier, builder.threads, builder.machine.caches)
            cut = Choice(algorithm="direct", **asdict(parts))
        own = conv.kernels.part(part.first, part.groups, part.merged)
        sides = planes(x, read, width), planes(out, made, width)
        emit_direct(builder, node, Direct(*sides, None, own, None, part.groups // part.merged, width, conv.fields), cut)


def _bias(builder: Builder, node: Node) -> Operand | None:
    return builder.general(node.inputs[2]) if node.input(2) else None


def _emit_depthwise(builder: Builder, node: Node, conv: Moving) -> None:
    packed = pack_depthwise_kernels(builder, node, conv.kernels.values)
    bias = packed_bias(builder, node, conv.kernels.bias, conv.out.layout.c)
    builder.emit("conv_depthwise", node, conv.out, conv.x, packed=packed, **bias, **conv.fields)


def lower_computed_conv_transpose(builder: Builder, node: Node) -> None:
    """Lower a ComputedConvTranspose: a convolution a phase, as of weights that do not change."""
    x, out = builder.blocked(node.inputs[0]), builder.new_blocked(node.outputs[0])
    groups, bias = int(number(node, "group")), _bias(builder, node)
    # Outputs and inputs change places: (groups, outputs, inputs, kh, kw) of what is computed here.
    weights = in_groups(builder.general(node.inputs[1]), groups).permuted((0, 2, 1, 3, 4))
    single = set(integers(node, "strides")) == {1}
    depthwise = groups == x.layout.c == out.layout.c > 1
    if not single and out.layout.halo != NO_HALO:
        builder.emit("frame", f"{node.outputs[0]} frame", out, x)
    for rows, columns in phases(builder.graph, node):
        own = out if single else _own_pixels(node, out, rows, columns)
        if not rows.taps or not columns.taps:
            _emit_without_taps(builder, node, own, x, bias)
            continue
        fields = {
            "kernel_h": len(rows.taps),
            "kernel_w": len(columns.taps),
            "stride_h": 1,
            "stride_w": 1,
            "dilation_h": rows.dilation,
            "dilation_w": columns.dilation,
            "pad_top": rows.pad,
            "pad_left": columns.pad,
            **_OPEN,
        }
        conv = Moving(x, own, MovingKernels(_own_taps(weights, rows, columns), bias), fields)
        if depthwise and single:
            _emit_depthwise(builder, node, conv)
        elif depthwise:  # by itself first: the kernel writes whole rows
            made = _alone(builder, own)
            _emit_depthwise(builder, node, replace(conv, out=made))
            builder.emit("spread", f"{node.outputs[0]} pixels", own, made)
        elif single:
            _emit_chosen(builder, node, builder.chosen(node)[0], conv, builder.chosen(node)[1])
        else:
            shape = phase_shape(builder.graph, node, rows, columns)
            _emit_chosen(builder, node, shape, conv, direct_choice(shape, builder.machine))


def _emit_without_taps(builder: Builder, node: Node, own: Tensor, x: Tensor, bias: Operand | None) -> None:
    """Write the pixels that no tap reaches: zeros, or the bias alone."""
    label = f"{node.outputs[0]} pixels"
    if bias is None:
        builder.emit("zero", label, own, x)
        return
    nothing, made = _alone(builder, own), _alone(builder, own)
    builder.emit("zero", label, nothing, x)
    factors = fill_channels(None, own.layout.c, own.layout.blocks, builder.tier.vector_width)
    fields = {"weights": factors, **packed_bias(builder, node, bias, own.layout.c), **_OPEN}
    builder.emit("scale_shift", label, made, nothing, **fields)
    builder.emit("spread", label, own, made)


def _alone(builder: Builder, own: Tensor) -> Tensor:
    """Return room for the pixels of a phase by themselves."""
    layout = own.layout
    return builder.in_arena(blocked((layout.n, layout.c, layout.h, layout.w), builder.tier.vector_width))


def _own_pixels(node: Node, out: Tensor, rows: AxisPhase, columns: AxisPhase) -> Tensor:
    """Return the pixels of a phase, a stride apart in the result."""
    layout = out.layout
    stride_h, stride_w = integers(node, "strides")
    strided = replace(
        layout, h=rows.count, w=columns.count, row=layout.row * stride_h, pixel=layout.pixel * stride_w, halo=NO_HALO
    )
    return out.seen_as(strided, layout.start + rows.first * layout.row + columns.first * layout.pixel)


def _own_taps(weights: Operand, rows: AxisPhase, columns: AxisPhase) -> Operand:
    """Return the taps that reach a phase, in the order of the pixels they are multiplied with."""
    for axis, taps in ((3, rows.taps), (4, columns.taps)):
        weights = weights.sliced(axis, taps[0], len(taps), taps[1] - taps[0] if len(taps) > 1 else 1)
    return weights


def lower_conv_weight_gradient(builder: Builder, node: Node) -> None:
    """Lower a ConvWeightGradient."""
    shape, _ = builder.chosen(node)
    width = builder.tier.vector_width
    x, gradient = builder.blocked(node.inputs[0]), builder.blocked(node.inputs[1])
    weights = in_groups(builder.new_general(node.outputs[0]), shape.groups)
    fields: dict[str, Any] = kernel_fields(shape)
    if shape.depthwise:
        scratch = builder.scratch(shape.kernel[1] * width)
        builder.emit_gradient(
            "conv_depthwise_weight_gradient", node, x, gradient, operands=(weights,), scratch=scratch, **fields
        )
        return
    if shape.taps == 1 and shape.strides == (1, 1) and shape.pads == (0, 0):
        x, gradient, _ = flattened(x, gradient, None)
    together = _TOGETHER if shape.taps == 1 else 1
    pairs = builder.tier.computes_in(BF16)
    narrowed = (1 + _MOST_BLOCKS) * _PIECE_PAIRS * width if pairs else 0
    scratch = builder.scratch(together * shape.kernel[1] * _MOST_BLOCKS * width * width + narrowed)
    for part in group_parts(shape, width):
        read = part.channels(shape.inputs // shape.groups)
        made = part.channels(shape.outputs // shape.groups)
        builder.emit_gradient(
            "conv_weight_gradient_bf16" if pairs else "conv_weight_gradient",
            node,
            planes(x, read, width),
            planes(gradient, made, width),
            operands=(weights.sliced(0, part.first, part.groups),),
            scratch=scratch,
            numbers=(part.merged,),
            groups=part.groups // part.merged,
            **fields,
        )
