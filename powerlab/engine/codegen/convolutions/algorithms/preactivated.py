"""Convolutions of single pixels that scale, shift and activate what they read: a dense block's, for one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import direct_cycles, direct_works
from powerlab.engine.codegen.convolutions.algorithms.fields import result, window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.codegen.pack import (
    aligned_floats,
    fill_channels,
    filled_rows,
    pack_direct,
    packed_direct_floats,
    unit_bounds,
)
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import NO_HALO, Halo, divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_WEIGHT_PARTS = 16
"""The second-level cache over the weights of one unit that are taken up at a time: half and twice as many were slower
or no faster."""


class PreactivatedConvolution(Struct, frozen=True):
    """1 x 1 convolutions together with the ScaleShift before them."""

    name: str = "preactivated"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        return shape.preactivated

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts that keep what is used again in the second-level cache, one for each share of the channels.

        Half of it is for some pixels of as many channels of the input as are taken up at a time, and of the sums; of
        the weights of one unit, so few need to be there that more channels at a time were no faster.
        """
        tier, threads = machine.tier, machine.threads
        in_blocks, out_blocks = divide_up(shape.inputs, tier.vector_width), divide_up(shape.outputs, tier.vector_width)
        vector_bytes = FLOAT_BYTES * tier.vector_width
        weight_bytes = vector_bytes * tier.vector_width * min(out_blocks, tier.tile_blocks)
        resident = max(1, machine.caches.l2_bytes // _WEIGHT_PARTS // weight_bytes)
        chunk_blocks = divide_up(in_blocks, divide_up(in_blocks, resident))
        fitting = machine.caches.l2_bytes // 2 // (vector_bytes * (chunk_blocks + out_blocks)) // tier.tile_pixels
        splits = (
            split
            for split in range(1, threads + 1)
            if threads % split == 0 and split <= divide_up(out_blocks, tier.tile_blocks)
        )
        return tuple(
            Choice(
                algorithm=self.name,
                tile_blocks=tier.tile_blocks,
                tile_pixels=tier.tile_pixels,
                channel_split=split,
                chunk_blocks=chunk_blocks,
                chunk_tiles=max(1, min(fitting, divide_up(divide_up(shape.pixels * split, threads), tier.tile_pixels))),
            )
            for split in splits
        )

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take: three for each vector it changes."""
        vectors = shape.pixels * divide_up(shape.inputs, machine.tier.vector_width)
        changed = vectors * choice.channel_split / machine.threads
        return direct_cycles(direct_works(shape, machine.tier)[0], shape.inputs, choice, machine) + 3 * changed

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input: none."""
        return NO_HALO

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the step that computes a FusedConv and the ScaleShift it reads."""
        tier, before = builder.tier, builder.preactivation(node)
        width = tier.vector_width
        x = builder.blocked(before.inputs[0])
        out, residual = result(builder, node)
        in_blocks, out_blocks = x.layout.blocks, out.layout.blocks
        pixels = choice.chunk_tiles * tier.tile_pixels
        floats = (choice.chunk_blocks + out_blocks) * (pixels + 1) * width
        weights, lanes = builder.kept(node.inputs[1]), choice.chunk_blocks * width
        pack = partial(pack_pieces, lanes=lanes, width=width, tile_blocks=tier.tile_blocks)
        channels = [
            fill_channels(builder.optional_constant(node.input(2)), shape.outputs, out_blocks, width),
            fill_channels(builder.constant(before.inputs[1]), shape.inputs, in_blocks, width),
            fill_channels(builder.constant(before.inputs[2]), shape.inputs, in_blocks, width),
        ]
        builder.emit(
            "conv_preactivated",
            node,
            out,
            x,
            residual,
            choice=choice,
            weights=derived(weights, (packed_direct_floats(weights.shape, 1, width),), pack),
            bias=np.concatenate(channels),
            scratch=builder.scratch(floats),
            groups=1,
            last_lanes=shape.inputs - (in_blocks - 1) * width,
            channel_split=choice.channel_split,
            chunk_blocks=choice.chunk_blocks,
            chunk_tiles=choice.chunk_tiles,
            **{f"x_{name}": value for name, value in clamp_fields(before).items()},
            **window_fields(shape, node),
        )


def pack_pieces(weights: Floats, lanes: int, width: int, tile_blocks: int) -> Floats:
    """Return the weights as they are taken up: of so many input channels at a time, packed as for ``conv_direct``."""
    outputs, inputs, *kernel = weights.shape
    packed = aligned_floats(packed_direct_floats(weights.shape, 1, width))
    pieces = inputs // lanes
    whole = pieces * lanes
    if whole:
        _pack_whole(packed, weights[:, :whole].reshape(outputs, pieces, lanes, *kernel), width, tile_blocks)
    if whole < inputs:
        last = weights[:, whole:]
        behind = packed[packed.size - packed_direct_floats(last.shape, 1, width) :]
        pack_direct(last, 1, width, tile_blocks, width, packed=behind)
    return packed


def _pack_whole(packed: Floats, weights: Floats, width: int, tile_blocks: int) -> None:
    """Pack all pieces of as many channels at once, unit by unit: one by one they are too many small copies.

    Args:
        packed: what to pack into, from its beginning on.
        weights: shape (O, pieces, channels of a piece, kh, kw).
        width: channels of a block.
        tile_blocks: output blocks of a unit at most.
    """
    outputs, pieces, lanes, *kernel = weights.shape
    blocks = divide_up(outputs, width)
    piece_floats = blocks * width * lanes * math.prod(kernel)
    of_pieces = packed[: pieces * piece_floats].reshape(pieces, piece_floats)
    at = 0
    for begin, end in itertools.pairwise(unit_bounds(blocks, tile_blocks)):
        rows = filled_rows(weights[begin * width : end * width], (end - begin) * width)
        unit = rows.reshape(end - begin, width, pieces, lanes // width, width, *kernel).transpose(2, 3, 5, 6, 4, 0, 1)
        size = unit.size // pieces
        of_pieces[:, at : at + size].reshape(unit.shape)[...] = unit
        at += size
