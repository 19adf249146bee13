"""Products of computed matrices: the right side is packed by a step of its own, then multiplied.

Attention is two of them with a softmax between: one step behind those that pack keys and values.
"""

from __future__ import annotations

import math
from typing import cast

from msgspec.structs import replace

from powerlab.engine.codegen.attention import Attention
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.pairs.attention import attention_scratch, is_worth_rounding, pair_packed, pair_sides
from powerlab.engine.codegen.pairs.product import is_of_rows, multiply_rows
from powerlab.engine.codegen.quantized.byte_products import byte_factor, byte_sides, is_of_bytes
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.operand import Operand, joined
from powerlab.engine.program.storage import FLOAT_BYTES, Space
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier

_LONGEST_CHUNK = 512
"""Beyond it, sums are so seldom written and read again that longer chunks gain nothing."""

_LONGEST_PACKED_CHUNK = 256
"""The same where rows are packed."""

_MANY_VECTORS = 8
"""Of columns: each panel of them reads all rows, so it is worth while to pack those that do not lie side by side."""

_FEW_VECTORS = 2
"""Of rows: with more of them, packing all weights is worth while."""

_MANY_COLUMNS = 4
"""Times as many as rows."""

_FEW = 32
"""Rows, or elements of the inner axis, up to which the right side is read as it lies: to pack it takes as long."""

_MOST_TILES = 32
"""Of rows whose scores are made at a time: with more, keys and values come from the second-level cache as seldom."""


def lower_product(builder: Builder, node: Node) -> None:
    """Lower a Product."""
    left, right = (_side(builder, node, index) for index in (0, 1))
    out = _result(builder, node)
    if is_of_bytes(node):
        sides = byte_sides(builder, node, left, right)
        operands = (out, *(_repeated(side, out.sizes[:-2]) for side in sides))
        inner = (right.sizes[-2],)
        builder.emit_general("matmul_u8", node, _joined_batches(operands), inner, alpha=byte_factor(node))
    elif _is_read_once(builder, node, left, right):
        rows = int(left.sizes[0] > _FEW)
        builder.emit_general("matmul_few_f32", node, (out, left, right), (rows,), alpha=number(node, "alpha"))
    elif is_of_rows(builder, node, out, left, right):
        multiply_rows(builder, node, out, left, right)
    elif is_worth_rounding(left.sizes[-2], right, builder.tier):
        sides = pair_sides(builder, node, left, right)
        operands = (out, *(_repeated(side, out.sizes[:-2]) for side in sides))
        inner = (right.sizes[-2],)
        builder.emit_general("matmul_bf16", node, _joined_batches(operands), inner, alpha=number(node, "alpha"))
    elif _is_better_turned(builder, node, left, right):
        # The transpose of both sides, and of the result: what is packed are the few rows, and not all weights.
        made = builder.room(out.sizes[::-1])
        _multiply(builder, node, made, right.permuted((1, 0)), left.permuted((1, 0)))
        builder.copy(node, out, made.permuted((1, 0)))
    else:
        _multiply(builder, node, out, left, right)


def fits(graph: Graph, tier: Tier, attention: Attention) -> bool:
    """Tell whether an attention may be computed in one step: of more rows than a register tile has.

    It is so in float32, and in bfloat16 by AMX.
    """
    rows = graph.shape(attention.products[0].outputs[0])[-2]
    known = tier.multiplies_matrices or not tier.computes_in_16_bits()
    return known and not any(map(is_of_bytes, attention.products)) and rows > tier.tile_pixels


def lower_attention(builder: Builder, attention: Attention) -> bool:
    """Append the step; return False, having appended nothing, where its operands have no common batch axes.

    So it does where the elements of a row lie apart, or, in bfloat16, where a product is too small to be rounded.
    """
    first, second = attention.products
    left, *rights = _side(builder, first, 0), _side(builder, first, 1), _side(builder, second, 1)
    rows, keys = left.sizes[-2], rights[0].sizes[-1]
    own = [builder.graph.shape(node.outputs[0])[:-2] for node in (first, second)]
    batches = max((*own, *(mask.shape[:-2] for mask in attention.masks)), key=len)
    masks = [builder.general(mask.name).broadcast((*mask.shape[:-2], rows, keys)) for mask in attention.masks]
    read = [_with_batches(one, batches) for one in (_repeated(left, own[0]), *masks)]
    # What is packed is compact, and so has any batch axes, unless it is repeated along some.
    fits_right = all(batch in (batches, side.sizes[:-2]) for side, batch in zip(rights, own, strict=True))
    in_pairs = builder.tier.multiplies_matrices
    if in_pairs:
        fits_right &= all(is_worth_rounding(rows, side, builder.tier) for side in rights)
    else:
        fits_right &= left.strides[-1] == 1
    if None in read or math.prod(own[0]) != math.prod(own[1]) or not fits_right:
        return False
    out = _with_batches(_result(builder, second), batches)
    if out is None:
        return False
    pack = pair_packed if in_pairs else _packed
    packed = [
        _with_batches(_repeated(pack(builder, node, side), batch), batches)
        for node, side, batch in zip(attention.products, rights, own, strict=True)
    ]
    operands = _joined_batches(cast("tuple[Operand, ...]", (out, read[0], *packed, *read[1:])))
    emit = _attention_in_pairs if in_pairs else _attention_in_floats
    emit(builder, attention, operands, rights[0].sizes[-2:])
    return True


def _attention_in_pairs(
    builder: Builder, attention: Attention, operands: tuple[Operand, ...], sizes: tuple[int, ...]
) -> None:
    """Append the step of an attention by AMX; ``sizes`` are the inner axis of its scores, and their keys."""
    alpha, beta = (number(node, "alpha") for node in attention.products)
    builder.emit_general(
        "attention_bf16",
        attention.products[1],
        operands,
        (*sizes, int(attention.zeros)),
        scratch=attention_scratch(builder, *sizes),
        alpha=alpha,
        beta=beta,
    )


def _attention_in_floats(
    builder: Builder, attention: Attention, operands: tuple[Operand, ...], sizes: tuple[int, ...]
) -> None:
    rows, keys = operands[0].sizes[-2], sizes[1]
    width, tile = builder.tier.vector_width, builder.tier.tile_pixels
    row_floats = divide_up(keys, width) * width
    most = builder.machine.caches.l2_bytes // 4 // (FLOAT_BYTES * row_floats * tile)
    all_tiles = divide_up(rows, tile)
    tiles = divide_up(all_tiles, divide_up(all_tiles, max(1, min(most, _MOST_TILES))))
    builder.emit_general(
        "attention_f32",
        attention.products[1],
        operands,
        (_LONGEST_CHUNK, tiles, keys, int(attention.zeros)),
        scratch=builder.scratch(tiles * tile * row_floats),
    )


def _with_batches(operand: Operand, batches: tuple[int, ...]) -> Operand | None:
    """Return matrices with their batch axes as others; None where no strides say that."""
    if operand.sizes[:-2] == batches:
        return operand
    return operand.reshaped((*batches, *operand.sizes[-2:]))


def _result(builder: Builder, node: Node) -> Operand:
    """Return room for the product: in the order of a Transpose that alone reads it, where rows of it stay together."""
    reader = builder.sole_reader(node.outputs[0])
    if reader is None or reader.op_type != "Transpose":
        return builder.new_general(node.outputs[0])
    order, made = integers(reader, "perm"), reader.outputs[0]
    if order[-1] != len(order) - 1:
        return builder.new_general(node.outputs[0])
    builder.written.add(made)
    return builder.new_general(made).permuted([order.index(axis) for axis in range(len(order))])


def _multiply(builder: Builder, node: Node, out: Operand, left: Operand, right: Operand) -> None:
    packed, batches = _packed(builder, node, right), out.sizes[:-2]
    sides = (out, _repeated(left, batches), _repeated(packed, batches))
    packs = left.strides[-1] != 1 and divide_up(out.sizes[-1], builder.tier.vector_width) >= _MANY_VECTORS
    chunk, together, tiles = _cut(right.sizes[-2], builder.tier, builder.machine, packs=packs)
    tiles = min(tiles, divide_up(out.sizes[-2], builder.tier.tile_pixels))
    scratch = builder.scratch(tiles * builder.tier.tile_pixels * chunk) if packs else None
    builder.emit_general("matmul_f32", node, _joined_batches(sides), (chunk, together, tiles), scratch=scratch)


def _packed(builder: Builder, node: Node, right: Operand) -> Operand:
    """Return the right side, packed: once for all products that read it, as a recurrence's do at each step of time."""
    alpha, known = number(node, "alpha"), builder.packed_matrices
    if (right, alpha) in known:
        return known[right, alpha]
    *batch, inner, columns = right.sizes
    packed_floats = inner * divide_up(columns, builder.tier.vector_width) * builder.tier.vector_width
    packed = builder.room((*batch, 1, packed_floats))
    builder.emit_general("pack_matrix_f32", f"{node.name or node.outputs[0]} packed", (packed, right), alpha=alpha)
    known[right, alpha] = packed
    return packed


def _is_read_once(builder: Builder, node: Node, left: Operand, right: Operand) -> bool:
    """Say whether few rows meet many weights, or a sum over few makes many, as of a layer's gradients."""
    if len(left.sizes) != 2 or len(right.sizes) != 2 or right.strides[1] != 1:
        return False
    rows, inner, columns = left.sizes[0], *right.sizes
    if inner <= _FEW:
        return rows >= _MANY_COLUMNS * inner and columns >= _MANY_COLUMNS * inner
    weights = right.storage.space is Space.INPUT and not _has_others(builder, node)
    return weights and rows <= _FEW and min(inner, columns) >= _MANY_COLUMNS * rows


def _has_others(builder: Builder, node: Node) -> bool:
    """Say whether other products read the right side in the same order, and so its packed form."""
    order = node.attributes["right"]
    return sum(reader.attributes.get("right") == order for reader in builder.readers(node.inputs[1])) > 1


def _is_better_turned(builder: Builder, node: Node, left: Operand, right: Operand) -> bool:
    """Say whether few rows meet many weights, which a run brings along for this product alone, row by row."""
    weights = len(right.sizes) == 2 and right.storage.space is Space.INPUT and right.strides[0] == 1
    if not weights or len(left.sizes) != 2 or _has_others(builder, node):
        return False
    rows, columns = left.sizes[0], right.sizes[1]
    return rows <= _FEW_VECTORS * builder.tier.vector_width and columns >= _MANY_COLUMNS * rows


def _cut(inner: int, tier: Tier, machine: Machine, *, packs: bool) -> tuple[int, int, int]:
    """Return how much of the inner axis is taken at a time, how many panels of columns, and how many tiles of rows.

    The rows of a tile fit half of the first-level cache, the panels half of the second-level one, and all rows a
    quarter of it. Packed rows come from there, too, as the panel does: both fit the first-level cache then.
    """
    rows = max(1, machine.caches.l1_bytes // 2 // (FLOAT_BYTES * tier.tile_pixels))
    chunk = divide_up(inner, divide_up(inner, min(rows, _LONGEST_PACKED_CHUNK if packs else _LONGEST_CHUNK)))
    panel_bytes = FLOAT_BYTES * chunk * tier.tile_blocks * tier.vector_width
    tile_bytes = FLOAT_BYTES * chunk * tier.tile_pixels
    l2_bytes = machine.caches.l2_bytes
    return chunk, max(1, l2_bytes // 2 // panel_bytes), max(1, l2_bytes // 4 // tile_bytes)


def _side(builder: Builder, node: Node, index: int) -> Operand:
    operand = builder.general(node.inputs[index])
    order = cast("tuple[int, ...]", node.attributes[("left", "right")[index]])
    return operand.permuted(order) if order else operand


def _repeated(operand: Operand, batches: tuple[int, ...]) -> Operand:
    """Return an operand with all batch axes of the result."""
    return operand.broadcast((*batches, *operand.sizes[-2:]))


def _joined_batches(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Return the operands with as few batch axes as possible, at least one."""
    batches = joined([replace(one, sizes=one.sizes[:-2] or (1,), strides=one.strides[:-2] or (0,)) for one in operands])
    return tuple(
        replace(one, sizes=(*batch.sizes, *one.sizes[-2:]), strides=(*batch.strides, *one.strides[-2:]))
        for one, batch in zip(operands, batches, strict=True)
    )
