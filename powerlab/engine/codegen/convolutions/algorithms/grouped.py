"""Convolutions in groups of a few channels: a kernel of its own, in which groups fill a vector side by side."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import emit_in_blocks, in_blocks
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.pack import pack_grouped
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, divide_up
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_CHANNELS = (4, 8)
"""Channels of a group that the kernel takes."""

_EFFICIENCY = 0.8
"""Against nothing but multiply-adds: pixels are shuffled, too."""


class GroupedConvolution(Struct, frozen=True):
    """3 x 3 convolutions in groups that have as many channels in as out, and fewer than a vector."""

    name: str = "grouped"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        channels, width = shape.inputs // shape.groups, tier.vector_width
        fits = channels in _CHANNELS and shape.inputs == shape.outputs and channels < width
        plain = shape.kernel == (3, 3) and shape.strides in {(1, 1), (2, 2)} and shape.dilations == (1, 1)
        return fits and plain and shape.groups > 1

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the one way there is."""
        return (Choice(algorithm=self.name),)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        vectors = shape.pixels * divide_up(shape.outputs, machine.tier.vector_width)
        multiplied = vectors * shape.taps * shape.inputs // shape.groups
        return multiplied / machine.multiply_adds_per_cycle / _EFFICIENCY / machine.threads

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv."""
        tensors, groups = in_blocks(builder, node), shape.groups
        emit_in_blocks(builder, node, shape, choice, tensors, family="conv_grouped", pack=pack_grouped, groups=groups)
