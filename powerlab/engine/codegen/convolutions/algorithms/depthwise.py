"""Depthwise convolution: a kernel of its own, in which every channel block is by itself."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import Tensors, emit_in_blocks, in_blocks
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
        """Append the step that computes a FusedConv: to 16-bit floats where all that reads it takes them."""
        family, tensors = self._in_pairs(builder, node) or ("conv_depthwise", in_blocks(builder, node))
        emit_in_blocks(builder, node, shape, choice, tensors, family=family, pack=pack_depthwise)

    def _in_pairs(self, builder: Builder, node: Node) -> tuple[str, Tensors] | None:
        """Return the kernel that writes 16-bit floats, and what it gets; None where floats are to be written."""
        if not builder.ends_in_pairs(node):
            return None
        x, precision = node.inputs[0], builder.tier.precision
        if builder.lies_in_pairs(x):
            family, read = f"conv_depthwise_{precision}", builder.pairs(x)
        else:
            family, read = f"conv_depthwise_to_{precision}", builder.blocked(x)
        return family, (builder.new_pairs(node.outputs[0]), read, None)
