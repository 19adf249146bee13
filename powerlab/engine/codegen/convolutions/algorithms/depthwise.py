"""Depthwise convolution: a kernel of its own, in which every channel block is by itself."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import emit_in_blocks
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.pack import pack_depthwise
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, divide_up
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


class DepthwiseConvolution(Struct, frozen=True):
    """Convolutions with as many groups as channels on both sides."""

    name: str = "depthwise"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        return shape.depthwise

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the one way there is."""
        return (Choice(algorithm=self.name),)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        return shape.taps * shape.pixels * divide_up(shape.outputs, machine.tier.vector_width) / 2

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv: to 16-bit floats where all that reads it computes in them."""
        narrow = not node.input(3) and builder.is_read_in_pairs(node.outputs[0])
        family = f"conv_depthwise_{builder.tier.precision}" if narrow else "conv_depthwise"
        emit_in_blocks(builder, node, shape, choice, family=family, pack=pack_depthwise, narrow=narrow)
