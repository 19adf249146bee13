"""The kernel ``gemv``: linear layers of few images, a matter of reading the weights."""

from __future__ import annotations

from functools import partial
from typing import Any

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.pack import fill_channels, pack_direct, packed_direct_floats, packed_weights
from powerlab.engine.ir.constants import Value
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import Layout, divide_up
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.target.tiers import Tier

GEMV_IMAGES = 8
"""Images that it takes at most, as its header says."""

_GEMV_BLOCKS = 4
"""Output blocks that it takes together at most."""


def unit_blocks(images: int, tier: Tier) -> int:
    """Return how many output blocks it takes together: their sums for all images fit into a register tile."""
    return max(1, min(_GEMV_BLOCKS, tier.tile_blocks * tier.tile_pixels // images))


def emit_gemv(
    builder: Builder, node: Node, out: Tensor, x: Tensor, weights: Value, *, bias: Floats | None, **fields: Any
) -> None:
    """Append the step that multiplies few images by weights.

    Args:
        builder: of the program.
        node: what it computes.
        out: room for the result, of images whose channels follow on each other.
        x: likewise.
        weights: shape (outputs, features, 1, 1).
        bias: one number an output; None: zeros.
        fields: of the native step and of :meth:`.Builder.emit`.
    """
    outputs, features = weights.shape[:2]
    width = builder.tier.vector_width
    made = images_as_pixels(out.layout, outputs, width)
    together = unit_blocks(made.w, builder.tier)

    builder.emit(
        "gemv",
        node,
        out.seen_as(made),
        x.seen_as(images_as_pixels(x.layout, features, features)),
        weights=packed_weights(
            weights,
            packed_direct_floats(weights.shape, 1, width),
            partial(pack_direct, groups=1, width=width, tile_blocks=together, lanes=features),
        ),
        bias=fill_channels(bias, outputs, made.blocks, width),
        unit_blocks=together,
        **fields,
    )


def images_as_pixels(layout: Layout, channels: int, lanes: int) -> Layout:
    """Return images as the pixels of one row, whose channels follow on each other, so many in a block."""
    return Layout(
        n=1,
        c=channels,
        h=1,
        w=layout.n,
        blocks=divide_up(channels, lanes),
        pixel=layout.image,
        row=layout.size,
        plane=lanes,
        image=layout.size,
    )
