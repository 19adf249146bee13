"""Products of computed matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.matrices import matrix_tiles
from powerlab.engine.gpu.lowering.strided import emit_strided
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Element, Operand, compact_strides, joined

Batch = tuple[tuple[int, int], list[tuple[int, int]]]
"""Sizes of two axes of matrices, and the strides of each operand along them."""

_LANES = 32
_TILE_ROWS = 4
_BATCH_AXES = 2
_OF_LANE, _LANES_OF_TILE, _INNER = 4, 8, 16
"""Rows and columns of a lane, lanes along each, and what lies in shared memory of a row or column at once."""

_WORTH_TILES = 16
"""Rows and columns of a product that is worth shared memory, at least."""


def lower_product(builder: Builder, node: Node) -> None:
    """Lower a Product; operands whose batch has more axes than the kernel takes are copied before.

    Raises:
        PowerlabError: an operand that is copied has more axes than a copy takes.
    """
    made = builder.new_operand(node.outputs[0])
    x, y = (side(builder, node, index) for index in (0, 1))
    batch = batch_axes([x, y, made], made.sizes[:-2])
    if batch is None:
        x, y = (_copied(builder, node, one, made.sizes[:-2]) for one in (x, y))
        batch = cast("Batch", batch_axes([x, y, made], made.sizes[:-2]))  # one axis, as all lie alike
    (outer, inner_batches), (x_batch, y_batch, out_batch) = batch
    rows, columns, inner = made.sizes[-2], made.sizes[-1], x.sizes[-1]
    kernel, constants, (tile_rows, tile_columns) = _kernel(builder, rows, columns)
    builder.emit(
        kernel,
        node,
        [one.storage for one in (made, x, y)],
        constants=constants,
        push=(
            number(node, "alpha"),
            *(rows, columns, inner, inner_batches),
            *(*x_batch, *x.strides[-2:]),
            *(*y_batch, *y.strides[-2:]),
            *(*out_batch, *made.strides[-2:]),
        ),
        groups=(-(-columns // tile_columns), -(-rows // tile_rows), outer * inner_batches),
    )


def _copied(builder: Builder, node: Node, matrices: Operand, batch: tuple[int, ...]) -> Operand:
    """Return matrices one after the other, as many as the batch has."""
    sizes = (*batch, *matrices.sizes[-2:])
    copy = Operand(builder.room(math.prod(sizes)), Element.FLOAT, sizes, compact_strides(sizes))
    emit_strided(builder, node, "copy", copy, (matrices,))
    return copy


def _kernel(builder: Builder, rows: int, columns: int) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """Return a kernel, its specialization constants, and the rows and columns of a work group.

    A processor that stands in for a GPU computes best through its caches.
    """
    target = builder.target
    if target.broadcasts or min(rows, columns) < _WORTH_TILES:
        return "product", (_LANES, _TILE_ROWS), (_TILE_ROWS, _LANES)
    by_matrices = next(matrix_tiles(target.matrices, rows, columns, target, 2), None) if builder.half else None
    if by_matrices is None:
        each, lanes = _OF_LANE, _LANES_OF_TILE
        return "product_tiled", (lanes**2, each, each, lanes, lanes, _INNER), (each * lanes, each * lanes)
    lanes = by_matrices.across * by_matrices.down * target.subgroup_lanes
    return "product_matrix_half", (lanes, *by_matrices.constants), (by_matrices.rows, by_matrices.outputs)


def side(builder: Builder, node: Node, index: int) -> Operand:
    """Return the left (0) or right (1) matrices of a Product."""
    operand = builder.operand(node.inputs[index])
    order = cast("tuple[int, ...]", node.attributes[("left", "right")[index]])
    return operand.permuted(order) if order else operand


def batch_axes(matrices: Sequence[Operand], batch: tuple[int, ...]) -> Batch | None:
    """Return the batch of matrices that broadcast as two axes: sizes, and strides of each; None where it takes more."""
    whole = [one.broadcast((*batch, *one.sizes[-2:])) for one in matrices]
    heads = joined([replace(one, sizes=one.sizes[:-2] or (1,), strides=one.strides[:-2] or (0,)) for one in whole])
    fill = _BATCH_AXES - len(heads[0].sizes)
    if fill < 0:
        return None
    outer, inner = (1,) * fill + heads[0].sizes
    strides = [cast("tuple[int, int]", (0,) * fill + one.strides) for one in heads]
    return (outer, inner), strides
