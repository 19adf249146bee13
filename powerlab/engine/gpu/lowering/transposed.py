"""Transposed convolutions: one convolution a phase, whose pixels are put a stride apart into the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.phases import AxisPhase, phases
from powerlab.engine.gpu.activations import Finish, finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolution import emit_convolution
from powerlab.engine.gpu.lowering.convolved import Convolution, Window
from powerlab.engine.gpu.lowering.strided import copy
from powerlab.engine.gpu.lowering.weights import Floats, KnownWeights, Weights
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Element, Operand, compact_strides

_LANES = 4
"""Channels of a vector, in blocks."""

OfPhase = Callable[[AxisPhase, AxisPhase], Weights | None]


def lower_conv_transpose(builder: Builder, node: Node) -> None:
    """Lower a FusedConvTranspose."""
    weights = builder.graph.kept_constants[node.inputs[1]]
    channels = builder.image(node.outputs[0]).channels
    bias = builder.graph.constants[node.input(2)] if node.input(2) else np.zeros(channels, np.float32)

    def of_phase(rows: AxisPhase, columns: AxisPhase) -> KnownWeights:
        kernel = (max(1, len(rows.taps)), max(1, len(columns.taps)))
        own = derived(weights, (*weights.shape[:2], *kernel), partial(_own_taps, rows=rows, columns=columns))
        return KnownWeights(own, bias)

    emit_phases(builder, node, of_phase, finish_of(node))


def emit_phases(builder: Builder, node: Node, of_phase: OfPhase, finish: Finish) -> None:
    """Append a convolution a phase of a transposed one.

    Args:
        builder: gets them.
        node: what is computed.
        of_phase: returns the weights that reach a phase, one tap of zeros where none do; None: it is all zeros.
        finish: how the kernels end.
    """
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    source, out = builder.blocks(node.inputs[0]), builder.new_blocks(node.outputs[0])
    stride_h, stride_w = integers(node, "strides")
    for rows, columns in phases(builder.graph, node):
        part = Image(made.images, made.channels, rows.count, columns.count)
        sizes = (part.images * part.blocks, rows.count, columns.count, _LANES)
        row = made.width * _LANES
        strides = (made.pixels * _LANES, stride_h * row, stride_w * _LANES, 1)
        pixels = Operand(out, Element.FLOAT, sizes, strides, rows.first * row + columns.first * _LANES)
        label, weights = f"{node.outputs[0]} pixels", of_phase(rows, columns)
        if weights is None:
            zero = Operand(builder.constant(np.zeros(1, np.float32)), Element.FLOAT, (), ())
            copy(builder, label, pixels, zero)
            continue
        conv = Convolution(
            x=x,
            made=part,
            window=Window(
                kernel=(max(1, len(rows.taps)), max(1, len(columns.taps))),
                pads=(rows.pad, columns.pad),
                dilations=(rows.dilation, columns.dilation),
            ),
            weights=weights,
            groups=int(number(node, "group")),
            finish=finish,
        )
        if (stride_h, stride_w) == (1, 1):
            emit_convolution(builder, node, (out, source, None), conv)
            continue
        computed = builder.room(_LANES * part.vectors)
        emit_convolution(builder, node, (computed, source, None), conv)
        copy(builder, label, pixels, Operand(computed, Element.FLOAT, sizes, compact_strides(sizes)))


def _own_taps(weights: Floats, rows: AxisPhase, columns: AxisPhase) -> Floats:
    """Return the kernels of a phase; zeros where no tap reaches it, so that it gets its bias alone."""
    if not rows.taps or not columns.taps:
        return np.zeros((*weights.shape[:2], max(1, len(rows.taps)), max(1, len(columns.taps))), np.float32)
    taps: Floats = np.ascontiguousarray(weights[:, :, rows.taps][..., columns.taps])
    return taps
