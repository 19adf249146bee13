"""Boxes of a tensor that a ScatterND assigns to: exporters write ``x[:, 1:] = y`` with an index of every element."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.gathering import UPDATES
from powerlab.engine.program.operand import Operand


def assigned_box(graph: Graph, node: Node, data: Operand) -> Operand | None:
    """Return the part of a tensor that a ScatterND's constant indices name in order.

    Args:
        graph: the node's.
        node: the ScatterND.
        data: the tensor, of the shape of the node's result.

    Returns:
        The part as the updates lie; None where the indices are no box or no constant, or updates are added.
    """
    if node.inputs[1] not in graph.kept_constants or int(number(node, "update")) != UPDATES["none"]:
        return None
    index = graph.constants[node.inputs[1]]
    *walked, named = index.shape
    sizes = np.array(data.sizes[:named])
    index = np.where(index < 0, index + sizes, index)
    if not index.size or index.min() < 0 or np.any(index >= sizes):
        return None
    first = index[(0,) * len(walked)]
    steps = np.zeros((len(walked), named), np.int64)
    regular = first
    for axis, count in enumerate(walked):
        if count > 1:
            steps[axis] = index[tuple(int(at == axis) for at in range(len(walked)))] - first
        along = np.arange(count).reshape(-1, *(1,) * (len(walked) - axis))
        regular = regular + along * steps[axis]
    moved = steps != 0
    once = moved.sum(axis=0).max(initial=0) <= 1 and np.array_equal(moved.sum(axis=1), np.array(walked) > 1)
    if not once or not np.array_equal(regular, index):
        return None
    strides = np.array(data.strides[:named])
    return replace(
        data,
        sizes=(*walked, *data.sizes[named:]),
        strides=(*(steps @ strides).tolist(), *data.strides[named:]),
        offset=data.offset + int(first @ strides),
    )


def is_all(box: Operand, data: Operand) -> bool:
    """Tell whether a box of a tensor is the whole of it, element by element."""
    steps = zip(box.strides, data.strides, box.sizes, strict=False)
    return (box.sizes, box.offset) == (data.sizes, data.offset) and all(
        own == other or size == 1 for own, other, size in steps
    )
