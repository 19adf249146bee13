"""LayerNormalization and RMSNormalization become RowNorm, and Mul and Add where scale or shift are no rows.

A RowNorm has the attributes ``kernel`` (``layer_norm``, ``rms_norm``, or ``l2_norm``, which another pass makes),
``axis``, the first that is normalised, and ``epsilon``; its inputs after the first are scale and shift, one number an
element of a row, or neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.row_norms import first_axis
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_KERNELS = {"LayerNormalization": "layer_norm", "RMSNormalization": "rms_norm"}


def _norm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, axis = view.node, first_axis(view)
    row = math.prod(view.shape(0)[axis:])
    rank = len(view.shape(0)) - axis
    is_row = [not view.has(index) or _is_row(view.shape(index), row, rank) for index in (1, 2)]
    attributes = {"kernel": _KERNELS[node.op_type], "axis": axis, "epsilon": view.number("epsilon", 1e-5)}
    expansion = Expansion(view, rewriter)
    if len(node.outputs) > 1:
        _moments(view, expansion, axis)
    if all(is_row):
        return [*expansion.nodes, Node("RowNorm", node.name, node.inputs, node.outputs[:1], attributes)]
    plain = rewriter.tensor(f"{node.outputs[0]}.plain", view.shape(0))
    expansion.nodes.append(Node("RowNorm", node.name, node.inputs[:1], (plain,), attributes))
    made = expansion("Mul", plain, node.inputs[1])
    if node.input(2):
        made = expansion("Add", made, node.inputs[2])
    return expansion.ending(made)


def _is_row(shape: tuple[int, ...], row: int, rank: int) -> bool:
    """Say whether a scale or shift has one number an element of a row, which spans the last ``rank`` axes."""
    return math.prod(shape) == row and all(size == 1 for size in shape[: max(0, len(shape) - rank)])


def _moments(view: NodeView, expansion: Expansion, axis: int) -> None:
    """Compute the mean and 1 / the standard deviation of each row, as far as somebody reads them."""
    node = view.node
    axes = expansion.ints(range(axis, len(view.shape(0))))
    mean = expansion("ReduceMean", node.inputs[0], axes, output=node.outputs[1])
    if len(node.outputs) > 2 and node.outputs[2]:
        deviation = expansion("Sub", node.inputs[0], mean)
        variance = expansion("ReduceMean", expansion("Mul", deviation, deviation), axes)
        moved = expansion("Add", variance, expansion.floats(view.number("epsilon", 1e-5)))
        expansion("Reciprocal", expansion("Sqrt", moved), output=node.outputs[2])


def lower_row_norms(graph: Graph) -> Graph:
    """Return the graph with RowNorm instead of layer and root mean square normalisations."""
    return rewrite_nodes(graph, dict.fromkeys(_KERNELS, _norm))
