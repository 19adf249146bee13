"""Winograd convolutions, and when to use one.

The choice is a cost model in cycles of one core: multiplications, transforms, and weights that come from memory, of
which Winograd has more. F(4 x 4) pays for large images, F(2 x 2) for smaller ones, neither for the last stages of a
network. The number of threads has no say, so that results do not depend on it: the algorithms round differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.engine.graph import Node
from powerlab.engine.layout import Layout, divide_up
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.partition import L2_BYTES
from powerlab.engine.pack import fill_channels, pack_winograd
from powerlab.engine.program import Floats, Tensor
from powerlab.engine.tiers import Tier

DIRECT = 0
"""The tile size that means: no Winograd."""

_MEMORY_BYTES_PER_CYCLE = 6
"""Weights from memory."""

_TRANSFORM_CYCLES = {2: (30, 20), 4: (110, 80)}
"""One tile of one channel block, there and back."""

_GEMM_EFFICIENCY = 0.87
"""The products' register tiles against a direct convolution's: shorter reductions, more stores."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A 3 x 3 convolution of stride 1: images, channels in and out, output rows and columns."""

    images: int
    inputs: int
    outputs: int
    rows: int
    columns: int


def choose_tile(shape: Shape, tier: Tier) -> int:
    """Return the output tile size of the fastest algorithm: 2, 4, or :data:`DIRECT`."""
    if min(shape.inputs, shape.outputs) < tier.vector_width:
        return DIRECT
    return min((DIRECT, 2, 4), key=lambda tile: _cycles(shape, tile, tier.vector_width))


def _cycles(shape: Shape, tile: int, width: int) -> float:
    in_blocks, out_blocks = divide_up(shape.inputs, width), divide_up(shape.outputs, width)
    multiplications = shape.inputs * out_blocks / 2  # vectors, two a cycle
    weight_cycles = 4 * shape.inputs * out_blocks * width / _MEMORY_BYTES_PER_CYCLE
    if tile == DIRECT:
        pixels = shape.images * shape.rows * shape.columns
        return 9 * (multiplications * pixels + weight_cycles)
    tiles = shape.images * divide_up(shape.rows, tile) * divide_up(shape.columns, tile)
    forth, back = _TRANSFORM_CYCLES[tile]
    positions = (tile + 2) ** 2
    return (
        tiles * (positions * multiplications / _GEMM_EFFICIENCY + forth * in_blocks + back * out_blocks)
        + positions * weight_cycles
    )


def tiles_together(in_blocks: int, tile: int, tier: Tier) -> int:
    """Return how many tiles a thread takes at a time: transformed input and products stay in most of the L2 cache."""
    bytes_a_tile = 4 * tier.vector_width * (tile + 2) ** 2 * (in_blocks + tier.tile_blocks)
    fitting = L2_BYTES * 3 // 4 // bytes_a_tile // tier.tile_pixels * tier.tile_pixels
    return max(tier.tile_pixels, min(fitting, 8 * tier.tile_pixels))


def emit_winograd(
    builder: Builder,
    node: Node,
    operands: tuple[Tensor, Tensor, Tensor | None],
    weights: Floats,
    *,
    bias: Floats | None,
    fields: Mapping[str, Any],
    tile: int,
) -> None:
    """Append a Winograd convolution.

    Args:
        builder: the program so far.
        node: the node it computes.
        operands: x, out and residual, blocked.
        weights: shape (O, I, 3, 3).
        bias: shape (O,).
        fields: fields of the native step that do not depend on the algorithm.
        tile: 2 or 4.
    """
    x, out, residual = operands
    tier, in_blocks = builder.tier, x.layout.blocks
    chunk = tiles_together(in_blocks, tile, tier)
    floats = (tile + 2) ** 2 * ((in_blocks + tier.tile_blocks) * chunk + 2) * tier.vector_width
    threads = builder.threads
    scratch = builder.in_arena(Layout(threads, floats, 1, 1, 1, 1, floats, floats, floats))
    builder.emit(
        f"conv_winograd{tile}",
        node,
        out,
        x,
        residual,
        scratch=scratch,
        weights=pack_winograd(weights, tile, tier.vector_width, tier.tile_blocks),
        bias=fill_channels(bias, weights.shape[0], out.layout.blocks, tier.vector_width),
        groups=1,
        lanes=tier.vector_width,
        last_lanes=weights.shape[1] - (in_blocks - 1) * tier.vector_width,
        chunk_tiles=chunk,
        **fields,
    )
