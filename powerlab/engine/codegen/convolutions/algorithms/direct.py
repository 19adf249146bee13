"""Direct convolution in blocks of channels; groups are joined until they fill whole blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.fields import result, window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.cost import StepCycles, fetch_cycles, overlapped, step_cycles
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Partition, Work, partition, tiles_of
from powerlab.engine.codegen.pack import merge_groups
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, divide_up
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_EFFICIENCY = 0.96
"""Of the inner loop, against nothing but multiply-adds."""

_TILE_CYCLES = 40
"""To take up a register tile and to store it."""

_NEXT_LEVEL_BYTES_PER_CYCLE = {"avx2": 16.0}
"""Bytes of pixels a cycle from the second-level cache, by tier, where multiply-adds do not hide that."""


class DirectConvolution(Struct, frozen=True):
    """Every convolution but the depthwise and the preactivated ones."""

    name: str = "direct"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        return not shape.depthwise and not shape.preactivated

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        return direct_candidates(self.name, direct_works(shape, machine.tier)[0], machine)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        width, filled = machine.tier.vector_width, 0
        if shape.from_outside:  # the image is copied into blocks first, zeros and all
            filled = FLOAT_BYTES * shape.images * shape.in_size[0] * shape.in_size[1] * _filling(shape.inputs, width)
        cycles = 0.0
        for part, work in zip(group_parts(shape, width), direct_works(shape, machine.tier), strict=True):
            cycles += direct_cycles(work, shape.inputs // shape.groups * part.merged, choice, machine)
        return cycles + filled / machine.memory_bytes_per_cycle

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that compute a FusedConv, one for each part of its groups."""
        width, groups = builder.tier.vector_width, shape.groups
        weights, bias = builder.kept(node.inputs[1]), builder.optional_constant(node.input(2))
        x = builder.blocked(node.inputs[0])
        out, residual = result(builder, node)
        if shape.taps == 1 and shape.strides == (1, 1):
            x, out, residual = flattened(x, out, residual)
        for part, work in zip(group_parts(shape, width), direct_works(shape, builder.tier), strict=True):
            read, made = part.channels(shape.inputs // groups), part.channels(shape.outputs // groups)
            conv = Direct(
                planes(x, read, width),
                planes(out, made, width),
                None if residual is None else planes(residual, made, width),
                part.kernels(weights, made),
                None if bias is None else bias.reshape(-1)[made.start : made.stop],
                part.groups // part.merged,
                width,
                {**window_fields(shape, node), **part.fields(shape.inputs // groups, shape.outputs // groups)},
            )
            cut = choice if part.first == 0 else _cut(choice, work, builder.machine)
            emit_direct(builder, node, conv, cut)


class GroupPart(Struct, frozen=True, gc=False):
    """Groups of a convolution that follow on each other, of which so many become one."""

    first: int
    groups: int
    merged: int

    def channels(self, each: int) -> range:
        """Return the channels of the part, a group having so many."""
        return range(self.first * each, (self.first + self.groups) * each)

    def fields(self, inputs: int, outputs: int) -> dict[str, int]:
        """Return what tells the native step between which of the channels weights are zeros, for groups of so many."""
        return {} if self.merged == 1 else {"joined_inputs": inputs, "joined_outputs": outputs}

    def kernels(self, weights: Value, outputs: range) -> Value:
        """Return the weights of the part's output channels, its groups joined."""
        inputs, *kernel = weights.shape[1:]
        own = partial(_of_part, outputs=outputs, part=self)
        return derived(weights, (len(outputs), inputs * self.merged, *kernel), own)


def _of_part(weights: Floats, outputs: range, part: GroupPart) -> Floats:
    own = weights[outputs.start : outputs.stop]
    return own if part.merged == 1 else merge_groups(own, part.groups, part.merged)


def group_parts(shape: ConvShape, width: int) -> tuple[GroupPart, ...]:
    """Return the groups in parts whose groups, joined, fill whole blocks: all of them, or all but the last few.

    The last few become one, which may end before its last block does.
    """
    groups = shape.groups
    each = (shape.inputs // groups, shape.outputs // groups)
    merged = 1 if groups == 1 else math.lcm(*(width // math.gcd(width, channels) for channels in each))
    if merged >= groups:
        return (GroupPart(0, groups, groups),)
    whole = groups // merged * merged
    first = GroupPart(0, whole, merged)
    return (first,) if whole == groups else (first, GroupPart(whole, groups - whole, groups - whole))


def direct_works(shape: ConvShape, tier: Tier) -> tuple[Work, ...]:
    """Return what ``conv_direct`` has to do for a convolution in blocks, for each part of its groups."""
    return _works(shape, tier.vector_width)


@lru_cache(maxsize=64)  # asked for each of a convolution's candidates
def _works(shape: ConvShape, width: int) -> tuple[Work, ...]:
    return tuple(part_work(shape, part, width, width, width, shape.bytes_read) for part in group_parts(shape, width))


def part_work(  # noqa: PLR0917 - sizes alone
    shape: ConvShape, part: GroupPart, width: int, block: int, lanes: int, x_bytes: int
) -> Work:
    """Return what there is to do for a part of a convolution's groups.

    Args:
        shape: the whole convolution.
        part: some of its groups.
        width: outputs of a vector.
        block: channels of a block of the input.
        lanes: of a block, each multiplied by itself.
        x_bytes: that the whole convolution reads.
    """
    rows, columns = shape.images * shape.size[0], shape.size[1]
    if shape.flat and shape.taps == 1 and shape.strides == (1, 1):
        rows, columns = shape.images, shape.size[0] * shape.size[1]
    return Work(
        groups=part.groups // part.merged,
        in_blocks=divide_up(shape.inputs // shape.groups * part.merged, block),
        lanes=lanes,
        taps=shape.taps,
        out_blocks=divide_up(shape.outputs // shape.groups * part.merged, width),
        rows=rows,
        columns=columns,
        x_bytes=x_bytes * part.groups // shape.groups,
        kernel_rows=shape.kernel[0],
    )


def _cut(choice: Choice, work: Work, machine: Machine) -> Choice:
    """Return the choice with a cut of its own for a part of the groups."""
    tier = machine.tier.with_tile(choice.tile_blocks)
    return replace(choice, **asdict(partition(work, tier, machine.threads, machine.caches)))


def planes(tensor: Tensor, channels: range, width: int) -> Tensor:
    """Return the channels of a tensor in blocks; the first begins a block."""
    layout = tensor.layout
    part = replace(layout, c=len(channels), blocks=divide_up(len(channels), width))
    return tensor.seen_as(part, channels.start // width * layout.plane)


def direct_candidates(algorithm: str, work: Work, machine: Machine) -> tuple[Choice, ...]:
    """Return how ``conv_direct`` may go through ``work``, in each of the tier's register tiles."""
    return tuple(one for tier in machine.tier.tiles() for one in _tile_candidates(algorithm, work, machine, tier))


def _tile_candidates(algorithm: str, work: Work, machine: Machine, tier: Tier) -> tuple[Choice, ...]:
    """Return how to go through ``work`` in one register tile: as the cache model says, and its neighbours."""
    threads, tiles = machine.threads, tiles_of(work, tier)
    cuts: list[Partition] = []
    for split in (parts for parts in range(1, threads + 1) if threads % parts == 0):
        cut = partition(work, tier, threads, machine.caches, split)
        blocks, count = cut.chunk_blocks, cut.chunk_tiles
        cuts += [
            cut,
            *(Partition(split, some, count) for some in (divide_up(blocks, 2), blocks * 2)),
            *(Partition(split, blocks, some) for some in (divide_up(count, 2), count * 2)),
        ]
    within = ((one.channel_split, min(one.chunk_blocks, work.in_blocks), min(one.chunk_tiles, tiles)) for one in cuts)
    return tuple(
        Choice(
            algorithm=algorithm,
            tile_blocks=tier.tile_blocks,
            tile_pixels=tier.tile_pixels,
            channel_split=split,
            chunk_blocks=blocks,
            chunk_tiles=count,
        )
        for split, blocks, count in dict.fromkeys(within)
    )


def direct_cycles(
    work: Work, channels: int, choice: Choice, machine: Machine, step_of: StepCycles = step_cycles
) -> float:
    """Return the cycles that the busiest thread takes for ``work``, its weights coming from memory.

    Args:
        work: what is to be done.
        channels: input channels of a group, not filled up to whole blocks.
        choice: how it is cut.
        machine: what it runs on.
        step_of: says what a register tile takes for an input channel.
    """
    tier, row_parts = machine.tier.with_tile(choice.tile_blocks), max(1, machine.threads // choice.channel_split)
    units = work.groups * divide_up(work.out_blocks, tier.tile_blocks)
    blocks = work.groups * work.out_blocks / units
    tiles = tiles_of(work, tier)
    pixels = work.rows * work.columns / tiles
    steps = channels * work.taps
    # Taps share the pixels that the first of them brought into the nearest cache.
    fetched_pixels = FLOAT_BYTES * pixels * channels / _NEXT_LEVEL_BYTES_PER_CYCLE.get(tier.name, math.inf)
    one_tile = steps * step_of(machine, blocks, pixels) / _EFFICIENCY + fetched_pixels + _TILE_CYCLES
    compute = divide_up(units, choice.channel_split) * divide_up(tiles, row_parts) * one_tile
    weight_bytes = FLOAT_BYTES * work.groups * work.out_blocks * tier.vector_width * steps / choice.channel_split
    fetched = fetch_cycles(machine, work.x_bytes, choice.channel_split)
    return overlapped(compute, weight_bytes / machine.memory_bytes_per_cycle) + fetched


def best_tile(work: Work, channels: int, machine: Machine) -> Tier:
    """Return the tier with the register tile that one thread is expected to do ``work`` fastest in."""
    alone = replace(machine, threads=1)

    def cycles(tier: Tier) -> float:
        return direct_cycles(work, channels, Choice(algorithm="direct", tile_blocks=tier.tile_blocks), alone)

    return min(machine.tier.tiles(), key=cycles)


def _filling(channels: int, width: int) -> int:
    return divide_up(channels, width) * width - channels


def flattened(x: Tensor, out: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return all operands as one long row, where all of them allow it: fewer tiles are cut short."""
    flat_x, flat_out = x.layout.flat(), out.layout.flat()
    flat_residual = residual.layout.flat() if residual else None
    if flat_x is None or flat_out is None:
        return x, out, residual
    if residual is None:
        return x.seen_as(flat_x), out.seen_as(flat_out), None
    if flat_residual is None:
        return x, out, residual
    return x.seen_as(flat_x), out.seen_as(flat_out), residual.seen_as(flat_residual)
