"""Products of two computed matrices, as in attention, in bfloat16: native/engine/kernels/pairs/matmul_pairs.hpp."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import divide_up, pair_words
from powerlab.engine.program.operand import Operand
from powerlab.engine.target.tiers import BF16, Tier

_LEAST = 16
"""Elements of each axis, below which rounding takes as long as is won."""

MOST_ROWS = 8
"""Of a kernel's register tile: a matrix of words has room for a whole tile of rows at its end."""


def is_worth_rounding(left: Operand, right: Operand, tier: Tier) -> bool:
    """Tell whether a product is computed in bfloat16: of smaller ones, rounding takes as long as it spares.

    Many matrices at once are attention's; a single one may be a gradient of weights, which stays in float32.
    """
    inner, columns = right.sizes[-2:]
    large = min(left.sizes[-2], inner, columns) >= _LEAST
    return tier.computes_in(BF16) and len(right.sizes) > 2 and large


def pair_sides(builder: Builder, node: Node, left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Append the steps that round the sides of a product; return its rows of words and its packed right side."""
    label, width = node.name or node.outputs[0], builder.tier.vector_width
    *batch, inner, columns = right.sizes
    rows, words = left.sizes[-2], pair_words(inner, builder.tier.narrow_block)
    room = builder.room((*left.sizes[:-2], rows + MOST_ROWS - 1, words))
    rounded = replace(room, sizes=(*left.sizes[:-1], words))
    builder.emit_general("narrow_matrix_bf16", f"{label} rows to bf16", (rounded, left))
    packed = builder.room((*batch, 1, divide_up(columns, width) * width * words))
    builder.emit_general("pack_matrix_bf16", f"{label} packed", (packed, right))
    return rounded, packed
