"""Products of two computed matrices, as in attention, in bfloat16: native/engine/kernels/pairs/matmul_pairs.hpp.

AMX computes all of an attention in one step: native/engine/kernels/pairs/attention_pairs.hpp.
"""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import divide_up, pair_words
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Tensor
from powerlab.engine.target.tiers import BF16, Tier

_LEAST = 16
"""Elements of each axis, below which rounding takes as long as is won."""

_SCORE_ROWS = 32
"""Of two tiles of AMX, whose scores are made at a time."""

MOST_ROWS = 8
"""Of a kernel's register tile: a matrix of words has room for a whole tile of rows at its end."""


def is_worth_rounding(rows: int, right: Operand, tier: Tier) -> bool:
    """Tell whether a product of so many rows is computed in bfloat16: of smaller ones, rounding takes what it spares.

    Many matrices at once are attention's; a single one may be a gradient of weights, which stays in float32.
    """
    large = min(rows, *right.sizes[-2:]) >= _LEAST
    return tier.computes_in(BF16) and len(right.sizes) > 2 and large


def pair_sides(builder: Builder, node: Node, left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Append the steps that round the sides of a product; return its rows of words and its packed right side."""
    rows, words = left.sizes[-2], pair_words(right.sizes[-2], builder.tier.narrow_block)
    room = builder.room((*left.sizes[:-2], rows + MOST_ROWS - 1, words))
    rounded = replace(room, sizes=(*left.sizes[:-1], words))
    builder.emit_general("narrow_matrix_bf16", f"{node.name or node.outputs[0]} rows to bf16", (rounded, left))
    return rounded, pair_packed(builder, node, right)


def pair_packed(builder: Builder, node: Node, right: Operand) -> Operand:
    """Append the step that rounds and packs the right side of a product; return what it makes."""
    width = builder.tier.vector_width
    *batch, inner, columns = right.sizes
    words = pair_words(inner, builder.tier.narrow_block)
    packed = builder.room((*batch, 1, divide_up(columns, width) * width * words))
    builder.emit_general("pack_matrix_bf16", f"{node.name or node.outputs[0]} packed", (packed, right))
    return packed


def attention_scratch(builder: Builder, inner: int, keys: int) -> Tensor:
    """Return what a thread needs for the scores, and the rounded rows, of two tiles of rows."""
    block = builder.tier.narrow_block
    return builder.scratch(_SCORE_ROWS * (2 * pair_words(keys, block) + pair_words(inner, block)))
