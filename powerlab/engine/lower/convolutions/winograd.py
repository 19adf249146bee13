"""Winograd convolutions.

The cost is a model in cycles of one core: multiplications, transforms, and weights that come from memory, of which
Winograd has more. F(4 x 4) pays for large images, F(2 x 2) for smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.engine.choice import Choice
from powerlab.engine.graph import Node
from powerlab.engine.layout import Halo, Layout, divide_up
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.conv_shape import FLOAT_BYTES, ConvShape, halo_of
from powerlab.engine.lower.convolutions.fields import result, window_fields
from powerlab.engine.lower.cost import overlapped, step_cycles
from powerlab.engine.machine import Machine
from powerlab.engine.pack import fill_channels, pack_winograd
from powerlab.engine.tiers import Tier

_EFFICIENCY = 0.93
"""Of the products' inner loop, against nothing but multiply-adds."""

_TILE_CYCLES = 40
"""To take up a register tile of products and to store it."""

_NEARER = 4
"""How many times faster weights come again for the next tiles, from the last cache, than they came from memory."""


@dataclass(frozen=True, slots=True)
class WinogradConvolution:
    """3 x 3 convolutions of stride 1, in output tiles of ``tile`` x ``tile`` pixels.

    Attributes:
        tile: rows and columns of an output tile.
        forth_cycles: cycles to transform the input of one tile of one channel block.
        back_cycles: cycles to transform its products back.
    """

    tile: int
    forth_cycles: float
    back_cycles: float

    @property
    def name(self) -> str:
        """Return how choices call it."""
        return f"winograd{self.tile}"

    @property
    def positions(self) -> int:
        """Return how many products make a tile."""
        return (self.tile + 2) ** 2

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``, and there are channels enough to be worth a thought."""
        return shape.kernel == (3, 3) and shape.plain and min(shape.inputs, shape.outputs) >= tier.vector_width

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        tier, own = machine.tier, self._own_tiles(shape, machine)
        fitting = tiles_together(divide_up(shape.inputs, tier.vector_width), self.tile, machine)
        together = (divide_up(own, divide_up(own, limit)) for limit in (fitting, fitting * 2, divide_up(fitting, 2)))
        return tuple(
            Choice(algorithm=self.name, tile_blocks=tier.tile_blocks, tile_pixels=tier.tile_pixels, chunk_tiles=count)
            for count in dict.fromkeys(together)
        )

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        width, tier = machine.tier.vector_width, machine.tier
        in_blocks, out_blocks = divide_up(shape.inputs, width), divide_up(shape.outputs, width)
        own = self._own_tiles(shape, machine)
        units = divide_up(out_blocks, tier.tile_blocks)
        parts = divide_up(choice.chunk_tiles, tier.tile_pixels)
        step = step_cycles(machine, out_blocks / units, choice.chunk_tiles / parts)
        products = self.positions * units * parts / choice.chunk_tiles * (shape.inputs * step + _TILE_CYCLES)
        transforms = self.forth_cycles * in_blocks + self.back_cycles * out_blocks
        weight_bytes = FLOAT_BYTES * self.positions * shape.inputs * out_blocks * width
        again = (divide_up(own, choice.chunk_tiles) - 1) / _NEARER
        return overlapped(
            own * (products / _EFFICIENCY + transforms), (1 + again) * weight_bytes / machine.memory_bytes_per_cycle
        )

    def _own_tiles(self, shape: ConvShape, machine: Machine) -> int:
        """Return how many tiles the busiest thread makes."""
        rows, columns = (divide_up(length, self.tile) for length in shape.size)
        return divide_up(shape.images * rows * columns, machine.threads)

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input: whole tiles are read."""
        rows, columns = (divide_up(length, self.tile) * self.tile for length in shape.size)
        return halo_of(shape, (rows, columns))

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv."""
        tier = builder.tier
        width = tier.vector_width
        weights, bias = builder.constant(node.inputs[1]), builder.optional_constant(node.input(2))
        x = builder.blocked(node.inputs[0])
        out, residual = result(builder, node)
        in_blocks = x.layout.blocks
        floats = self.positions * ((in_blocks + tier.tile_blocks) * choice.chunk_tiles + 2) * width
        scratch = builder.in_arena(Layout(builder.threads, floats, 1, 1, 1, 1, floats, floats, floats))
        builder.emit(
            f"conv_{self.name}",
            node,
            out,
            x,
            residual,
            choice=choice,
            scratch=scratch,
            weights=pack_winograd(weights, self.tile, width, tier.tile_blocks),
            bias=fill_channels(bias, shape.outputs, out.layout.blocks, width),
            groups=1,
            lanes=width,
            last_lanes=shape.inputs - (in_blocks - 1) * width,
            chunk_tiles=choice.chunk_tiles,
            **window_fields(shape, node),
        )


def tiles_together(in_blocks: int, tile: int, machine: Machine) -> int:
    """Return how many tiles a thread takes at a time: transformed input and products stay in most of the L2 cache."""
    tier = machine.tier
    bytes_a_tile = FLOAT_BYTES * tier.vector_width * (tile + 2) ** 2 * (in_blocks + tier.tile_blocks)
    fitting = machine.caches.l2_bytes * 3 // 4 // bytes_a_tile
    return max(tier.tile_pixels, min(fitting, 8 * tier.tile_pixels))
