"""The kernel ``conv_direct`` and what it asks for; convolutions and fully connected layers are views on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.moving_weights import MovingKernels, pack_kernels, packed_bias
from powerlab.engine.codegen.pack import fill_channels, pack_direct, packed_direct_floats, packed_weights
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Layout, divide_up
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.target.tiers import Tier


class Direct(Struct, frozen=True, eq=False):
    """A convolution on its way to ``conv_direct``; ``fields`` are those of the native step that stay as they are."""

    x: Tensor
    out: Tensor
    residual: Tensor | None
    weights: Value | MovingKernels
    bias: Floats | None
    groups: int
    lanes: int
    fields: Mapping[str, Any]

    @property
    def known_weights(self) -> Value:
        """Return the weights of a convolution whose weights do not change."""
        if isinstance(self.weights, MovingKernels):
            raise TypeError("weights that change have no value")
        return self.weights


def emit_direct(builder: Builder, node: Node, conv: Direct, choice: Choice) -> None:
    """Append the step that computes ``conv``: packed weights, and the work cut for threads and caches as chosen."""
    tier, layout, kernels = builder.tier.with_tile(choice.tile_blocks), conv.out.layout, conv.weights.shape
    inputs = kernels[1]
    in_blocks = divide_up(inputs, conv.lanes)
    builder.emit(
        "conv_direct",
        node,
        conv.out,
        conv.x,
        conv.residual,
        choice=choice,
        **_packed(builder, node, conv, tier, layout),
        groups=conv.groups,
        lanes=conv.lanes,
        last_lanes=inputs - (in_blocks - 1) * conv.lanes,
        unit_blocks=tier.tile_blocks,
        channel_split=choice.channel_split,
        chunk_blocks=choice.chunk_blocks,
        chunk_tiles=choice.chunk_tiles,
        **conv.fields,
    )


def _packed(builder: Builder, node: Node, conv: Direct, tier: Tier, layout: Layout) -> dict[str, Any]:
    """Return weights and bias as fields of the step: packed now, or by steps in front of it where they change."""
    weights = conv.weights
    if isinstance(weights, MovingKernels):
        return {
            "packed": pack_kernels(builder, node, weights, tier.tile_blocks, conv.lanes),
            **packed_bias(builder, node, weights.bias, layout.c),
        }
    return {
        "weights": packed_weights(
            weights,
            packed_direct_floats(weights.shape, conv.groups, tier.vector_width),
            partial(
                pack_direct,
                groups=conv.groups,
                width=tier.vector_width,
                tile_blocks=tier.tile_blocks,
                lanes=conv.lanes,
            ),
        ),
        "bias": fill_channels(conv.bias, weights.shape[0], layout.blocks, tier.vector_width),
    }
