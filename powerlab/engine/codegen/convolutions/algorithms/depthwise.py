"""Depthwise convolution: a kernel of its own, in which every channel block is by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import result, window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.pack import fill_channels, pack_depthwise
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, divide_up
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


@dataclass(frozen=True, slots=True)
class DepthwiseConvolution:
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
        """Append the step that computes a FusedConv."""
        width = builder.tier.vector_width
        weights, bias = builder.constant(node.inputs[1]), builder.optional_constant(node.input(2))
        x = builder.blocked(node.inputs[0])
        out, residual = result(builder, node)
        builder.emit(
            "conv_depthwise",
            node,
            out,
            x,
            residual,
            choice=choice,
            weights=pack_depthwise(weights, width),
            bias=fill_channels(bias, shape.outputs, out.layout.blocks, width),
            **window_fields(shape, node),
        )
