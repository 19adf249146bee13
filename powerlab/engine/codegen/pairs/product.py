"""Products of rows and weights that change from run to run, in bfloat16: rows are the pixels of a convolution."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.moving_weights import MovingKernels, pack_pair_kernels
from powerlab.engine.codegen.pack import fill_channels
from powerlab.engine.codegen.pairs.kernel import pair_tier
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Layout, divide_up, pair_words
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Tensor
from powerlab.engine.program.storage import Space
from powerlab.engine.target.tiers import BF16

_LEAST = 64
"""Elements of the inner axis, below which rounding rows takes as long as is won."""

_POINT: dict[str, Any] = {
    **dict.fromkeys(("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"), 1),
    **dict(zip(("low", "high"), NO_CLAMP, strict=True)),
    "slope": 1.0,
}
"""The window of a convolution that rows are, and no activation."""


def is_of_rows(builder: Builder, node: Node, out: Operand, left: Operand, right: Operand) -> bool:
    """Say whether a product is one of rows and weights, which :func:`multiply_rows` takes: vectors fill its rows."""
    if not builder.tier.computes_in(BF16) or len(right.sizes) != 2 or right.storage.space is not Space.INPUT:
        return False
    filled = not any(size % builder.tier.vector_width for size in (right.sizes[1], out.strides[-2], out.offset))
    rows = _are_rows(left) and _are_rows(out) and left.sizes[-1] >= _LEAST
    return filled and rows and number(node, "alpha") == 1


def _are_rows(matrices: Operand) -> bool:
    """Say whether the rows of all matrices lie at the same distance."""
    axes = list(zip(matrices.sizes, matrices.strides, strict=True))
    together = all(apart == size * step for (_, apart), (size, step) in pairwise(axes[:-1]))
    return together and matrices.strides[-1] == 1


def _rows(matrices: Operand) -> Operand:
    return replace(matrices, sizes=(math.prod(matrices.sizes[:-1]), matrices.sizes[-1]), strides=matrices.strides[-2:])


def multiply_rows(builder: Builder, node: Node, out: Operand, left: Operand, right: Operand) -> None:
    """Append the steps that round the left side's rows, pack the right side, and multiply."""
    left, out = _rows(left), _rows(out)
    tier, (rows, inner), columns = builder.tier, left.sizes, right.sizes[1]
    words, vectors = pair_words(inner, tier.narrow_block), divide_up(columns, tier.vector_width)
    work = Work(
        groups=1,
        in_blocks=1,
        lanes=words,
        taps=1,
        out_blocks=vectors,
        rows=1,
        columns=rows,
        x_bytes=4 * rows * words,
    )
    cut = partition(work, pair_tier(tier), builder.threads, builder.machine.caches)
    step, images = out.strides[0], rows * out.strides[0]
    made = Layout(1, columns, 1, rows, vectors, step, images, tier.vector_width, images)
    builder.emit(
        "conv_direct_bf16_f32",
        node,
        Tensor(out.storage, made, out.offset),
        _rounded(builder, node, left),
        choice=Choice(algorithm=BF16, **{**asdict(cut), "chunk_blocks": 0}),
        packed=_packed(builder, node, right),
        bias=fill_channels(None, columns, vectors, tier.vector_width),
        groups=1,
        lanes=words,
        last_lanes=words,
        channel_split=cut.channel_split,
        chunk_tiles=cut.chunk_tiles,
        numbers=[0],
        **_POINT,
    )


def _rounded(builder: Builder, node: Node, left: Operand) -> Tensor:
    """Return the rows as words."""
    (rows, inner), step = left.sizes, left.strides[0]
    source = Layout(1, 1, rows, inner, 1, 1, step, step * rows, step * rows)
    return builder.narrowed_rows(node.name or node.outputs[0], Tensor(left.storage, source, left.offset))


def _packed(builder: Builder, node: Node, right: Operand) -> Operand:
    """Return the weights, packed: likewise, as a recurrence's at each step of time."""
    known = builder.packed_pairs
    if right not in known:
        turned = right.permuted((1, 0))
        weights = replace(turned, sizes=(1, *turned.sizes, 1, 1), strides=(0, *turned.strides, 0, 0))
        known[right] = pack_pair_kernels(builder, node, MovingKernels(weights), pair_tier(builder.tier).tile_blocks)
    return known[right]
