"""Direct convolution in 16-bit floats: where such a precision is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import (
    direct_cycles,
    flattened,
    group_parts,
    part_work,
    planes,
)
from powerlab.engine.codegen.convolutions.algorithms.fields import window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.cost import step_cycles
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.moving_weights import Moving
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.pairs.kernel import Pairs, emit_pairs, pair_tier
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import PAIR_IMAGE, Halo, pair_blocks
from powerlab.engine.program.program import Tensor
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_CHANGE_CYCLES = 4
"""To scale, shift, activate and round a vector before a convolution."""

_MATRIX_TILE_CYCLES = 2.0
"""Of a word of a tile's pixels and a vector of outputs in AMX, whose loads take longer than its products (measured on
Intel's Xeon of model 167)."""

_MATRIX_TILE_END_CYCLES = 10
"""There, to store a vector of sums, add the bias, activate and round."""


class PairConvolution(Struct, frozen=True):
    """Every convolution but the depthwise ones, in bfloat16 or float16."""

    name: str

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        return tier.computes_in(self.name) and not shape.depthwise

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        return pair_candidates(self.name, _works(shape, machine.tier)[0], machine)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        machine = replace(machine, tier=pair_tier(machine.tier))
        read, made = shape.images * shape.inputs * math.prod(shape.in_size), shape.outputs * shape.pixels
        ends = _CHANGE_CYCLES * read * shape.preactivated
        if machine.tier.multiplies_matrices:
            ends += _MATRIX_TILE_END_CYCLES * made
        step_of = _matrix_tile_cycles if machine.tier.multiplies_matrices else step_cycles
        return ends / machine.tier.vector_width / machine.threads + sum(
            direct_cycles(work, work.in_blocks * work.lanes, choice, machine, step_of)
            for work in _works(shape, machine.tier)
        )

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that compute a FusedConv, one for each part of its groups."""
        groups = shape.groups
        weights, bias = builder.kept(node.inputs[1]), builder.optional_constant(node.input(2))
        is_image = _may_be_image(shape, builder.tier) and builder.is_outside(node.inputs[0])
        block = builder.tier.narrow_block
        read = PAIR_IMAGE if is_image else block
        if shape.preactivated:
            x = _changed(builder, node, shape)
        else:
            x = builder.pair_image(node.inputs[0]) if is_image else builder.pairs(node.inputs[0])
        result = pair_result(builder, node, shape)
        out, residual, narrow = result.out, result.residual, result.narrow_residual
        if shape.taps == 1 and shape.strides == (1, 1):
            x, out, residual = flattened(x, out, residual)
        width = builder.tier.vector_width
        for part, work in zip(group_parts(shape, block), _works(shape, builder.tier), strict=True):
            made = part.channels(shape.outputs // groups)
            conv = Pairs(
                x=planes(x, part.channels(shape.inputs // groups), read),
                out=planes(out, made, width if result.floats else block),
                floats=result.floats,
                residual=None if residual is None else planes(residual, made, block if narrow else width),
                narrow_residual=narrow,
                weights=part.kernels(weights, made),
                bias=None if bias is None else bias.reshape(-1)[made.start : made.stop],
                groups=part.groups // part.merged,
                words=read // 2,
                fields=window_fields(shape, node),
            )
            emit_pairs(builder, node, conv, choice if part.first == 0 else _cut(choice, work, builder))

    def emit_moving(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice, conv: Moving) -> None:
        """Append the steps that compute a convolution whose weights change from run to run: from floats to floats."""
        groups, width, block = shape.groups, builder.tier.vector_width, builder.tier.narrow_block
        x, out = builder.pairs(node.inputs[0]), conv.out
        if shape.taps == 1 and shape.strides == (1, 1) and shape.pads == (0, 0):
            x, out, _ = flattened(x, out, None)
        for part, work in zip(group_parts(shape, block), _works(shape, builder.tier), strict=True):
            own = Pairs(
                x=planes(x, part.channels(shape.inputs // groups), block),
                out=planes(out, part.channels(shape.outputs // groups), width),
                floats=True,
                residual=None,
                narrow_residual=False,
                weights=conv.kernels.part(part.first, part.groups, part.merged),
                bias=None,
                groups=part.groups // part.merged,
                words=block // 2,
                fields=conv.fields,
            )
            emit_pairs(builder, node, own, choice if part.first == 0 else _cut(choice, work, builder))


class PairResult(Struct, frozen=True):
    """Where a convolution's sums go: the fields of :class:`Pairs` of the same names."""

    out: Tensor
    floats: bool
    residual: Tensor | None
    narrow_residual: bool


def pair_result(builder: Builder, node: Node, shape: ConvShape) -> PairResult:
    """Return where the result of a FusedConv goes, and what is added to it."""
    name, added = node.outputs[0], node.input(3)
    floats = not builder.is_read_in_pairs(name)
    # What fills up the last block of floats may be anything.
    narrow = bool(added) and (builder.lies_in_pairs(added) or shape.outputs % builder.tier.narrow_block > 0)
    residual = None if not added else builder.pairs(added) if narrow else builder.blocked(added)
    return PairResult(builder.new_blocked(name) if floats else builder.new_pairs(name), floats, residual, narrow)


def pair_candidates(algorithm: str, work: Work, machine: Machine) -> tuple[Choice, ...]:
    """Return the cuts worth a try, in the register tile of the kernels on 16-bit floats."""
    tier = pair_tier(machine.tier)
    splits = (parts for parts in range(1, machine.threads + 1) if machine.threads % parts == 0)
    return tuple(
        Choice(
            algorithm=algorithm,
            tile_blocks=tier.tile_blocks,
            tile_pixels=tier.tile_pixels,
            channel_split=cut.channel_split,
            chunk_tiles=cut.chunk_tiles,
        )
        for cut in (partition(work, tier, machine.threads, machine.caches, split) for split in splits)
    )


def _may_be_image(shape: ConvShape, tier: Tier) -> bool:
    """Tell whether what is read has a word or two a pixel, if it comes from outside: AMX takes rows of any length."""
    return tier.multiplies_matrices and shape.groups == 1 and shape.inputs <= PAIR_IMAGE and not shape.preactivated


def _matrix_tile_cycles(_machine: Machine, blocks: float, _pixels: float) -> float:
    return _MATRIX_TILE_CYCLES * blocks


def _changed(builder: Builder, node: Node, shape: ConvShape) -> Tensor:
    """Append the step that scales, shifts and activates what a convolution reads; return it in 16-bit floats."""
    before, width = builder.preactivation(node), builder.tier.vector_width
    x = builder.blocked(before.inputs[0])
    out = builder.in_arena(pair_blocks((x.layout.n, x.layout.c, x.layout.h, x.layout.w), builder.tier.narrow_block))
    scale, shift = (
        fill_channels(builder.constant(name), shape.inputs, x.layout.blocks, width) for name in before.inputs[1:3]
    )
    fields = {f"x_{name}": value for name, value in clamp_fields(before).items()}
    precision = builder.tier.precision
    what = f"{before.outputs[0]} to {precision}"
    builder.emit(f"narrow_changed_{precision}", what, out, x, weights=scale, bias=shift, **fields)
    return out


def _works(shape: ConvShape, tier: Tier) -> tuple[Work, ...]:
    """Return what there is to do for each part of the groups; a word counts as a channel of floats."""
    block = PAIR_IMAGE if _may_be_image(shape, tier) else tier.narrow_block
    return tuple(
        part_work(shape, part, tier.vector_width, block, block // 2, shape.bytes_read // 2)
        for part in group_parts(shape, tier.narrow_block)
    )


def _cut(choice: Choice, work: Work, builder: Builder) -> Choice:
    cut = partition(work, pair_tier(builder.tier), builder.threads, builder.machine.caches)
    return replace(choice, **{name: value for name, value in asdict(cut).items() if name != "chunk_blocks"})
