"""1 x 1 convolutions of images of one pixel, as behind a global pool: linear layers of few images."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import result
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.convolutions.cost import overlapped, step_cycles
from powerlab.engine.codegen.gemv import GEMV_IMAGES, emit_gemv, unit_blocks
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import NO_HALO, Halo, divide_up
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


class PointConvolution(Struct, frozen=True):
    """Convolutions of one pixel, for up to as many images as the kernel ``gemv`` takes."""

    name: str = "point"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        one_pixel = shape.in_size == shape.size == (1, 1) and shape.taps == 1 and shape.flat
        alone = shape.groups == 1 and not shape.residual and not shape.preactivated
        return one_pixel and alone and shape.images <= GEMV_IMAGES

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the one way there is."""
        return (Choice(algorithm=self.name),)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        width, together = machine.tier.vector_width, unit_blocks(shape.images, machine.tier)
        blocks = divide_up(shape.outputs, width)
        units = divide_up(blocks, together)
        compute = divide_up(units, machine.threads) * shape.inputs * step_cycles(machine, blocks / units, shape.images)
        weight_bytes = FLOAT_BYTES * blocks * width * shape.inputs / min(units, machine.threads)
        return overlapped(compute, weight_bytes / machine.memory_bytes_per_cycle)

    def halo(self, shape: ConvShape) -> Halo:
        """Return that it needs no zeros around the planes of the input."""
        return NO_HALO

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv."""
        weights, bias = builder.kept(node.inputs[1]), builder.optional_constant(node.input(2))
        x = builder.blocked(node.inputs[0])
        out, _ = result(builder, node)
        emit_gemv(builder, node, out, x, weights, bias=bias, choice=choice, **clamp_fields(node))
