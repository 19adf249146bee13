"""Convolutions whose weights training moves, forwards and backwards to their images."""

from __future__ import annotations

import numpy as np

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.phases import AxisPhase
from powerlab.engine.gpu.activations import PLAIN
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolution import emit_convolution
from powerlab.engine.gpu.lowering.convolved import Convolution, Window
from powerlab.engine.gpu.lowering.training.moving import MovingWeights
from powerlab.engine.gpu.lowering.transposed import emit_phases
from powerlab.engine.gpu.lowering.weights import Weights
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.computed_weights import in_groups
from powerlab.engine.program.operand import Element, Operand


def lower_computed_conv(builder: Builder, node: Node) -> None:
    """Lower a ComputedConv."""
    groups = int(number(node, "group"))
    values = in_groups(builder.operand(node.inputs[1]), groups)
    conv = Convolution(
        x=builder.image(node.inputs[0]),
        made=builder.image(node.outputs[0]),
        window=window_of(node, builder.graph.shape(node.inputs[1])[2:]),
        weights=MovingWeights(values=values, bias=_bias(builder, node)),
        groups=groups,
        finish=PLAIN,
    )
    source = builder.blocks(node.inputs[0])
    emit_convolution(builder, node, (builder.new_blocks(node.outputs[0]), source, None), conv)


def lower_computed_conv_transpose(builder: Builder, node: Node) -> None:
    """Lower a ComputedConvTranspose: a convolution a phase, of which outputs and inputs change places."""
    values = in_groups(builder.operand(node.inputs[1]), int(number(node, "group"))).permuted((0, 2, 1, 3, 4))
    bias = _bias(builder, node)

    def of_phase(rows: AxisPhase, columns: AxisPhase) -> Weights | None:
        own = values
        if not rows.taps or not columns.taps:
            if bias is None:
                return None
            return MovingWeights(values=_nothing(builder, (*own.sizes[:3], 1, 1)), bias=bias)
        for axis, taps in ((3, rows.taps), (4, columns.taps)):
            own = own.sliced(axis, taps[0], len(taps), taps[1] - taps[0] if len(taps) > 1 else 1)
        return MovingWeights(values=own, bias=bias)

    emit_phases(builder, node, of_phase, PLAIN)


def window_of(node: Node, kernel: tuple[int, ...]) -> Window:
    """Return how a node's window of so many rows and columns moves."""
    (down, across), (below, beside), (top, left, *_) = (
        integers(node, name) for name in ("strides", "dilations", "pads")
    )
    rows, columns = kernel
    return Window(kernel=(rows, columns), strides=(down, across), pads=(top, left), dilations=(below, beside))


def _nothing(builder: Builder, sizes: tuple[int, ...]) -> Operand:
    """Return zeros."""
    return Operand(builder.constant(np.zeros(1, np.float32)), Element.FLOAT, (), ()).broadcast(sizes)


def _bias(builder: Builder, node: Node) -> Operand | None:
    return builder.operand(node.inputs[2]) if node.input(2) else None
