"""Winograd convolutions.

The cost is a model in cycles of one core: multiplications, transforms, and weights that come from memory, of which
Winograd has more. F(6 x 6) pays for the largest images, F(4 x 4) for large ones, F(2 x 2) for smaller ones. Kernels of
5 x 5 have the most to win: F(4 x 4) needs a sixth of their multiplications. A dilated convolution is several without
dilation, of every dilation-th pixel each, that share their weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import result, window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.cost import fetch_cycles, overlapped, step_cycles
from powerlab.engine.codegen.convolutions.direct_kernel import Direct
from powerlab.engine.codegen.moving_weights import Moving, pack_winograd_kernels, packed_bias
from powerlab.engine.codegen.pack import fill_channels, pack_winograd, packed_weights, packed_winograd_floats
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, divide_up
from powerlab.engine.program.program import Tensor
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_EFFICIENCY = 0.93
"""Of the products' inner loop, against nothing but multiply-adds."""

_TILE_CYCLES = 40
"""To take up a register tile of products and to store it."""

_NEARER = 2
"""How many times faster weights come again for the next tiles, from the last cache, than they came from memory."""

_KEPT = 5 / 8
"""Part of the second-level cache in which transformed input and products stay while weights pass through it."""

_LEAST_PIXELS = 4
"""Pixels of every dilation-th that an image has at least."""

_SPILLED_BYTES_PER_CYCLE = 12
"""What a core reads of transformed input and products that did not stay."""


class WinogradConvolution(Struct, frozen=True):
    """Square convolutions of stride 1, dilated or not, in output tiles of ``tile`` x ``tile`` pixels.

    Attributes:
        tile: rows and columns of an output tile.
        input_transform_cycles: cycles to transform the input of one tile of one channel block.
        output_transform_cycles: cycles to transform its products back.
        kernel: rows and columns of the kernel.
    """

    tile: int
    input_transform_cycles: float
    output_transform_cycles: float
    kernel: int = 3

    @property
    def name(self) -> str:
        """Return how choices call it."""
        return f"winograd{self.tile}" if self.kernel == 3 else f"winograd{self.tile}x{self.kernel}"

    @property
    def positions(self) -> int:
        """Return how many products make a tile."""
        return (self.tile + self.kernel - 1) ** 2

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``, and there are channels enough to be worth a thought."""
        if shape.kernel != (self.kernel, self.kernel) or shape.strides != (1, 1) or shape.preactivated:
            return False
        if any(length < _LEAST_PIXELS * dilation for length, dilation in _along(shape) if dilation > 1):
            return False  # most of a kernel meets padding, which direct convolution leaves out
        channels = (shape.inputs // shape.groups, shape.outputs // shape.groups)
        if shape.groups > 1 and any(count % tier.vector_width for count in channels):
            return False  # groups begin with a block
        return min(channels) >= tier.vector_width

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        tier = machine.tier
        in_blocks = divide_up(shape.inputs // shape.groups, tier.vector_width)
        fitting = tiles_together(in_blocks, self.tile, machine, self.kernel)
        found: dict[Choice, None] = {}
        for split in range(1, machine.threads + 1):
            if machine.threads % split or (split > 1 and _out_blocks(shape, tier) < split):
                continue
            # Few output channels go in smaller units, so that threads that divide them read each weight once.
            tile_blocks = min(tier.tile_blocks, divide_up(_out_blocks(shape, tier), split))
            own = self._own_tiles(shape, machine, split)
            for limit in (fitting, fitting * 2, divide_up(fitting, 2)):
                choice = Choice(
                    algorithm=self.name,
                    tile_blocks=tile_blocks,
                    tile_pixels=tier.tile_pixels,
                    channel_split=split,
                    chunk_tiles=divide_up(own, divide_up(own, limit)),
                )
                found.setdefault(choice)
        return tuple(found)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        tier, split, groups = machine.tier, choice.channel_split, shape.groups
        width, inputs = tier.vector_width, shape.inputs // groups
        positions, together = self.positions, choice.chunk_tiles
        group_blocks = divide_up(shape.outputs // groups, width)
        in_blocks, out_blocks = groups * divide_up(inputs, width), groups * group_blocks
        own, units = self._own_tiles(shape, machine, split), groups * divide_up(group_blocks, choice.tile_blocks)
        chunks, passes = divide_up(own, together), divide_up(units, split)
        parts = divide_up(together, tier.tile_pixels)
        step = step_cycles(machine, out_blocks / units, together / parts)
        products = positions * passes * parts / together * (inputs * step + _TILE_CYCLES)
        # Threads that divide the channels of one group all transform its input.
        transforms = (
            self.input_transform_cycles * in_blocks / min(groups, split)
            + self.output_transform_cycles * out_blocks / split
        )
        weight_bytes = FLOAT_BYTES * positions * inputs * out_blocks * width / split
        again = (chunks - 1) / _NEARER
        held = together * tile_bytes(in_blocks // groups, self.tile, tier, self.kernel)
        spilled = chunks * passes * max(0.0, held - _KEPT * machine.caches.l2_bytes)
        compute = own * (products / _EFFICIENCY + transforms)
        read = (1 + again) * weight_bytes / machine.memory_bytes_per_cycle
        fetched = fetch_cycles(machine, shape.bytes_read, split) if machine.threads > 1 else 0.0
        return overlapped(compute, read) + spilled / _SPILLED_BYTES_PER_CYCLE + fetched

    def _own_tiles(self, shape: ConvShape, machine: Machine, split: int) -> int:
        """Return how many tiles the busiest thread makes where the channels go in ``split`` parts."""
        (height, width), (down, across) = shape.size, shape.dilations
        tiles = down * self._tiles(height, down) * across * self._tiles(width, across)
        return divide_up(shape.images * tiles * split, machine.threads)

    def _tiles(self, length: int, dilation: int) -> int:
        """Return how many tiles lie along every dilation-th pixel."""
        return divide_up(divide_up(length, dilation), self.tile)

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input: whole tiles are read."""
        rows, columns = (dilation * self._tiles(length, dilation) * self.tile for length, dilation in _along(shape))
        return halo_of(shape, (rows, columns))

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv."""
        x = builder.blocked(node.inputs[0])
        self.emit_on(builder, node, shape, choice, x=x, weights=builder.kept(node.inputs[1]))

    def emit_on(
        self, builder: Builder, node: Node, shape: ConvShape, choice: Choice, *, x: Tensor, weights: Value
    ) -> None:
        """Append the step that computes a FusedConv, given the input in blocks and the weights."""
        out, residual = result(builder, node)
        bias, width = builder.optional_constant(node.input(2)), builder.tier.vector_width
        conv = Direct(x, out, residual, weights, bias, shape.groups, width, window_fields(shape, node))
        self.emit_between(builder, node, shape, choice, conv=conv)

    def emit_between(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice, *, conv: Direct) -> None:
        """Append the step that computes a convolution whose weights are known, wherever its tensors lie in blocks."""
        weights, width = conv.known_weights, builder.tier.vector_width
        floats = packed_winograd_floats(weights.shape, self.tile, width, conv.groups)
        pack = partial(pack_winograd, tile=self.tile, width=width, tile_blocks=choice.tile_blocks, groups=conv.groups)
        kernels = {
            "weights": packed_weights(weights, floats, pack),
            "bias": fill_channels(conv.bias, shape.outputs, conv.out.layout.blocks, width),
        }
        self._emit(builder, node, shape, choice, (conv.out, conv.x, conv.residual), {**kernels, **conv.fields})

    def emit_moving(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice, conv: Moving) -> None:
        """Append the steps that compute a convolution of 3 x 3 whose weights change from run to run."""
        packed = pack_winograd_kernels(builder, node, conv.kernels, self.tile, choice.tile_blocks)
        bias = packed_bias(builder, node, conv.kernels.bias, conv.out.layout.c)
        fields = {"packed": packed, **bias, **conv.fields}
        self._emit(builder, node, shape, choice, (conv.out, conv.x, None), fields)

    def _emit(  # noqa: PLR0917 - likewise
        self,
        builder: Builder,
        node: Node,
        shape: ConvShape,
        choice: Choice,
        tensors: tuple[Tensor, Tensor, Tensor | None],
        fields: Mapping[str, Any],
    ) -> None:
        tier, (out, x, residual) = builder.tier, tensors
        in_blocks = x.layout.blocks // shape.groups
        floats = self.positions * ((in_blocks + tier.tile_blocks) * choice.chunk_tiles + 2) * tier.vector_width
        builder.emit(
            f"conv_{self.name}",
            node,
            out,
            x,
            residual,
            choice=choice,
            scratch=builder.scratch(floats),
            groups=shape.groups,
            lanes=tier.vector_width,
            last_lanes=shape.inputs // shape.groups - (in_blocks - 1) * tier.vector_width,
            channel_split=choice.channel_split,
            unit_blocks=choice.tile_blocks,
            chunk_tiles=choice.chunk_tiles,
            **fields,
        )


def _along(shape: ConvShape) -> Iterable[tuple[int, int]]:
    """Return the pixels of the output down and across, each with the dilation."""
    return zip(shape.size, shape.dilations, strict=True)


def _out_blocks(shape: ConvShape, tier: Tier) -> int:
    """Return the output blocks of all groups."""
    return shape.groups * divide_up(shape.outputs // shape.groups, tier.vector_width)


def tile_bytes(in_blocks: int, tile: int, tier: Tier, kernel: int = 3) -> int:
    """Return the bytes of one tile's transformed input and of its products for one unit of output blocks.

    Args:
        in_blocks: input blocks of a group.
        tile: rows and columns of an output tile.
        tier: the kernels.
        kernel: rows and columns of the convolution's kernel.
    """
    return FLOAT_BYTES * tier.vector_width * (tile + kernel - 1) ** 2 * (in_blocks + tier.tile_blocks)


def tiles_together(in_blocks: int, tile: int, machine: Machine, kernel: int = 3) -> int:
    """Return how many tiles a thread takes at a time: transformed input and products stay in most of the L2 cache.

    Args:
        in_blocks: input blocks of a group.
        tile: rows and columns of an output tile.
        machine: whose cache and kernels.
        kernel: rows and columns of the convolution's kernel.
    """
    fitting = machine.caches.l2_bytes * 3 // 4 // tile_bytes(in_blocks, tile, machine.tier, kernel)
    return max(machine.tier.tile_pixels, min(fitting, 8 * machine.tier.tile_pixels))
