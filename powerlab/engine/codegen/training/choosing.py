"""How convolutions whose weights change are computed: weights are packed in each step, which counts, too."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.choosing import cheapest, expected_cycles
from powerlab.engine.codegen.convolutions.conv_shape import MOVING_CONVOLUTIONS, ConvShape, moving_conv_shape
from powerlab.engine.codegen.convolutions.phases import AxisPhase, phases
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import divide_up
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import BF16

_PACKING_CYCLES = {"direct": 120, BF16: 120, "winograd2": 300, "winograd4": 400}
"""Algorithm → cycles to pack the weights of one input channel and a block of outputs: of an AMD EPYC (Zen 4). F(6 x 6)
is not taken: gradients would lose a digit by it."""

_DIRECT = ("direct", BF16)
"""Algorithms that read no more zeros around the input than the convolution needs."""

_NARROWING_CYCLES = 4
"""To bring a vector of the input into bfloat16, which comes from memory; others may read it, too."""


def moving_shape(graph: Graph, node: Node) -> ConvShape | None:
    """Return the convolution that a node with weights that change is; None: it is none, or several."""
    if node.op_type in MOVING_CONVOLUTIONS:
        return moving_conv_shape(graph, node)
    if node.op_type == "ComputedConvTranspose" and set(integers(node, "strides")) == {1}:
        ((rows, columns),) = phases(graph, node)
        return phase_shape(graph, node, rows, columns)
    return None


def phase_shape(graph: Graph, node: Node, rows: AxisPhase, columns: AxisPhase) -> ConvShape:
    """Return the convolution that a phase of a transposed one is."""
    images, inputs, *in_size = graph.shape(node.inputs[0])
    return ConvShape(
        images=images,
        inputs=inputs,
        outputs=graph.shape(node.outputs[0])[1],
        groups=int(number(node, "group")),
        kernel=(len(rows.taps), len(columns.taps)),
        dilations=(rows.dilation, columns.dilation),
        pads=(rows.pad, columns.pad),
        in_size=(in_size[0], in_size[1]),
        size=(rows.count, columns.count),
    )


def moving_choice(node: Node, shape: ConvShape, machine: Machine) -> Choice:
    """Return how a node is computed: on any number of threads by the same algorithm."""
    if shape.depthwise:
        return cheapest(ALGORITHMS["depthwise"], shape, machine)
    if node.op_type == "ConvWeightGradient":
        return cheapest(ALGORITHMS["direct"], shape, machine)
    return _fastest(_PACKING_CYCLES if min(shape.pads) >= 0 else _DIRECT, shape, machine)


def direct_choice(shape: ConvShape, machine: Machine) -> Choice:
    """Return how a phase of a transposed convolution is computed, the zeros around whose input are those of all."""
    return _fastest(_DIRECT, shape, machine)


def _fastest(names: Iterable[str], shape: ConvShape, machine: Machine) -> Choice:
    alone, width = replace(machine, threads=1), machine.tier.vector_width
    kernels = divide_up(shape.outputs, width) * (shape.inputs // shape.groups)
    vectors = shape.images * shape.in_size[0] * shape.in_size[1] * divide_up(shape.inputs, width)

    def cycles(name: str) -> float:
        narrowed = vectors * _NARROWING_CYCLES if name == BF16 else 0
        return expected_cycles(ALGORITHMS[name], shape, alone) + kernels * _PACKING_CYCLES[name] + narrowed

    applicable = [name for name in names if ALGORITHMS[name].applies(shape, machine.tier)]
    return cheapest(ALGORITHMS[min(applicable, key=cycles)], shape, machine)
