"""Products of computed matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.operand import Operand, joined

_LANES = 32
_TILE_ROWS = 4
_BATCH_AXES = 2


def lower_product(builder: Builder, node: Node) -> None:
    """Lower a Product.

    Raises:
        PowerlabError: the batch has more axes than the kernel takes, after neighbours are joined.
    """
    sides = [_side(builder, node, index) for index in (0, 1)]
    out = builder.new_operand(node.outputs[0])
    batches = out.sizes[:-2]
    everything = [one.broadcast((*batches, *one.sizes[-2:])) for one in (out, *sides)]
    heads = joined([replace(one, sizes=one.sizes[:-2] or (1,), strides=one.strides[:-2] or (0,)) for one in everything])
    axes = len(heads[0].sizes)
    if axes > _BATCH_AXES:
        raise PowerlabError(
            f"{node} multiplies along {axes} axes, and on a GPU the engine does along {_BATCH_AXES}; use the cpu."
        )
    outer, inner_batches = (1,) * (_BATCH_AXES - axes) + heads[0].sizes
    out_batch, x_batch, y_batch = ((0,) * (_BATCH_AXES - axes) + one.strides for one in heads)
    made, x, y = everything
    rows, columns, inner = made.sizes[-2], made.sizes[-1], x.sizes[-1]
    builder.emit(
        "product",
        node,
        [one.storage for one in everything],
        constants=(_LANES, _TILE_ROWS),
        push=(
            number(node, "alpha"),
            *(rows, columns, inner, inner_batches),
            *(*x_batch, *x.strides[-2:]),
            *(*y_batch, *y.strides[-2:]),
            *(*out_batch, *made.strides[-2:]),
        ),
        groups=(-(-columns // _LANES), -(-rows // _TILE_ROWS), outer * inner_batches),
    )


def _side(builder: Builder, node: Node, index: int) -> Operand:
    operand = builder.operand(node.inputs[index])
    order = cast("tuple[int, ...]", node.attributes[("left", "right")[index]])
    return operand.permuted(order) if order else operand
