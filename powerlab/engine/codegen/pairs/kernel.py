"""The kernels ``conv_direct_bf16`` and ``conv_direct_fp16``, and what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.moving_weights import MovingKernels, pack_pair_kernels, packed_bias
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.pairs.pack import pack_pairs, packed_pairs_floats
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.target.tiers import FP16, Tier


def pair_tier(tier: Tier) -> Tier:
    """Return the tier with the register tile of its kernels on the 16-bit floats of its precision."""
    if tier.computes_in(FP16):
        blocks, pixels = tier.half_tile_blocks, tier.half_tile_pixels
    else:
        blocks, pixels = tier.pair_tile_blocks, tier.pair_tile_pixels
    return replace(tier, tile_blocks=blocks, tile_pixels=pixels, tall_blocks=0, long_pixels=0)


class Pairs(Struct, frozen=True, eq=False):
    """A convolution on its way to the kernel.

    Attributes:
        x: words of two channels.
        out: words, or floats in blocks of a vector.
        floats: whether the result is floats.
        residual: words or floats, likewise; None where nothing is added.
        narrow_residual: whether it is words.
        weights: shape (O, I / groups, kh, kw); or such that change from run to run, with their bias.
        bias: one number an output; None where there is none, or weights change.
        groups: each of whole blocks of 16 channels, where there is more than one.
        words: of an input block.
        fields: those of the native step that stay as they are.
    """

    x: Tensor
    out: Tensor
    floats: bool
    residual: Tensor | None
    narrow_residual: bool
    weights: Value | MovingKernels
    bias: Floats | None
    groups: int
    words: int
    fields: Mapping[str, Any]


def emit_pairs(builder: Builder, node: Node, conv: Pairs, choice: Choice) -> None:
    """Append the step that computes ``conv``."""
    precision = builder.tier.precision
    builder.emit(
        f"conv_direct_{precision}_f32" if conv.floats else f"conv_direct_{precision}",
        node,
        conv.out,
        conv.x,
        conv.residual,
        choice=choice,
        **_packed(builder, node, conv),
        groups=conv.groups,
        lanes=conv.words,
        last_lanes=conv.words,
        channel_split=choice.channel_split,
        chunk_tiles=choice.chunk_tiles,
        numbers=[int(conv.narrow_residual)],
        **conv.fields,
    )


def _packed(builder: Builder, node: Node, conv: Pairs) -> dict[str, Any]:
    """Return weights and bias as fields of the step: packed now, or by steps in front of it where they change."""
    tier, weights = pair_tier(builder.tier), conv.weights
    if isinstance(weights, MovingKernels):
        return {
            "packed": pack_pair_kernels(builder, node, weights, tier.tile_blocks),
            **packed_bias(builder, node, weights.bias, weights.shape[0]),
        }
    outputs, width, block = weights.shape[0], tier.vector_width, 2 * conv.words
    return {
        "weights": derived(
            weights,
            (packed_pairs_floats(weights.shape, conv.groups, tier, block),),
            partial(pack_pairs, groups=conv.groups, tier=tier, block=block),
        ),
        "bias": fill_channels(conv.bias, outputs, divide_up(outputs, width), width),
    }
