"""Transposed convolutions: one convolution a phase, whose pixels are put a stride apart into the result."""

from __future__ import annotations

from functools import partial

import numpy as np

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.phases import AxisPhase, phases
from powerlab.engine.gpu.activations import finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolution import emit_convolution
from powerlab.engine.gpu.lowering.convolved import Convolution, Floats, Window
from powerlab.engine.gpu.lowering.strided import copy
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Element, Operand, compact_strides

_LANES = 4
"""Channels of a vector, in blocks."""


def lower_conv_transpose(builder: Builder, node: Node) -> None:
    """Lower a FusedConvTranspose."""
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    weights = builder.graph.kept_constants[node.inputs[1]]
    bias = builder.graph.constants[node.input(2)] if node.input(2) else np.zeros(made.channels, np.float32)
    source, out = builder.blocks(node.inputs[0]), builder.new_blocks(node.outputs[0])
    stride_h, stride_w = integers(node, "strides")
    for rows, columns in phases(builder.graph, node):
        kernel = (max(1, len(rows.taps)), max(1, len(columns.taps)))
        window = Window(kernel=kernel, pads=(rows.pad, columns.pad), dilations=(rows.dilation, columns.dilation))
        own_taps = derived(weights, (*weights.shape[:2], *kernel), partial(_own_taps, rows=rows, columns=columns))
        part = Image(made.images, made.channels, rows.count, columns.count)
        conv = Convolution(
            x=x,
            made=part,
            window=window,
            weights=own_taps,
            bias=bias,
            groups=int(number(node, "group")),
            finish=finish_of(node),
        )
        computed = builder.room(_LANES * part.vectors)
        emit_convolution(builder, node, (computed, source, None), conv)
        sizes = (part.images * part.blocks, rows.count, columns.count, _LANES)
        row = made.width * _LANES
        strides = (made.pixels * _LANES, stride_h * row, stride_w * _LANES, 1)
        pixels = Operand(out, Element.FLOAT, sizes, strides, rows.first * row + columns.first * _LANES)
        copy(
            builder,
            f"{node.outputs[0]} pixels",
            pixels,
            Operand(computed, Element.FLOAT, sizes, compact_strides(sizes)),
        )


def _own_taps(weights: Floats, rows: AxisPhase, columns: AxisPhase) -> Floats:
    """Return the kernels of a phase; zeros where no tap reaches it, so that it gets its bias alone."""
    if not rows.taps or not columns.taps:
        return np.zeros((*weights.shape[:2], max(1, len(rows.taps)), max(1, len(columns.taps))), np.float32)
    taps: Floats = np.ascontiguousarray(weights[:, :, rows.taps][..., columns.taps])
    return taps
