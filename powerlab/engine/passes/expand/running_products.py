"""CumProd becomes products of what lies 1, 2, 4, ... apart: after each, an element holds twice as many factors.

Source: https://onnx.ai/onnx/operators/onnx__CumProd.html; W. D. Hillis and G. L. Steele, "Data Parallel Algorithms"
(1986).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.reducing import running_axis
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _running_product(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    add, axis, shape = Expansion(view, rewriter), running_axis(view), view.shape(0)
    size, reverse = shape[axis], bool(view.integer("reverse", 0))
    ones = np.ones((*shape[:axis], 1, *shape[axis + 1 :]), view.dtype(0))

    def cut(tensor: str, begin: int, end: int) -> str:
        return add("Slice", tensor, add.ints([begin]), add.ints([end]), add.ints([axis]))

    def after(tensor: str, distance: int) -> str:
        """Return the elements that have one so far before them."""
        return cut(tensor, 0, size - distance) if reverse else cut(tensor, distance, size)

    def joined(begin: str, rest: str) -> str:
        return add("Concat", rest, begin, axis=axis) if reverse else add("Concat", begin, rest, axis=axis)

    made = view.node.inputs[0]
    if view.integer("exclusive", 0):
        factor = rewriter.constant(f"{view.node.outputs[0]}.one", ones)
        made = joined(factor, cut(made, 1, size) if reverse else cut(made, 0, size - 1)) if size > 1 else factor
    distance = 1
    while distance < size:
        first = cut(made, size - distance, size) if reverse else cut(made, 0, distance)
        earlier = cut(made, distance, size) if reverse else cut(made, 0, size - distance)
        made = joined(first, add("Mul", after(made, distance), earlier))
        distance *= 2
    return add.ending(made)


def expand_running_products(graph: Graph) -> Graph:
    """Return the graph without CumProd."""
    return rewrite_nodes(graph, {"CumProd": _running_product})
