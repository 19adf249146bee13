"""A first layer of few channels: pixels keep their channels side by side, so that no lane is wasted on filling.

In that layout the channels of neighbouring pixels are neighbours too, and a kernel row is one run of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import direct_candidates, direct_cycles
from powerlab.engine.codegen.convolutions.algorithms.fields import result, window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work
from powerlab.engine.codegen.pack import fold_row
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, blocked, divide_up, shape4
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


class InterleavedConvolution(Struct, frozen=True):
    """Convolutions over images from outside that have at most half a vector of channels."""

    name: str = "interleaved"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        few_channels = shape.inputs * 2 <= tier.vector_width
        return few_channels and shape.groups == 1 and shape.dilations[1] == 1 and shape.from_outside

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        return direct_candidates(self.name, _work(shape, machine.tier), machine)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        work = _work(shape, machine.tier)
        return direct_cycles(work, work.lanes, choice, machine)

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that interleave the image and compute a FusedConv."""
        name = node.inputs[0]
        weights, bias = fold_row(builder.constant(node.inputs[1])), builder.optional_constant(node.input(2))
        x = builder.in_arena(blocked(shape4(builder.graph.shape(name)), shape.inputs, self.halo(shape)))
        builder.emit("reorder_to_blocks", f"{name} interleaved", x, builder.external(name))
        out, residual = result(builder, node)
        fields = {**window_fields(shape, node), "kernel_w": 1}
        conv = Direct(x, out, residual, weights, bias, 1, weights.shape[1], fields)
        emit_direct(builder, node, conv, choice)


def _work(shape: ConvShape, tier: Tier) -> Work:
    """Return what ``conv_direct`` has to do: the one input block is a kernel row."""
    return Work(
        groups=1,
        in_blocks=1,
        lanes=shape.inputs * shape.kernel[1],
        taps=shape.kernel[0],
        out_blocks=divide_up(shape.outputs, tier.vector_width),
        rows=shape.images * shape.size[0],
        columns=shape.size[1],
        x_bytes=shape.bytes_read,
    )
