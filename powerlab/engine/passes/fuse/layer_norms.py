"""(x - mean) / sqrt(variance + epsilon), as older exporters write it, becomes RowNorm; scale and shift join it.

Squares are those of Pow with 2 or of a product with itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.reducing import reduced_axes
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers, one_number


def fuse_layer_norms(graph: Graph) -> Graph:
    """Return the graph with RowNorm in place of its formula; what nobody reads any more is dropped later."""
    made = graph.producers()
    nodes = [(_norm(graph, node, made) if node.op_type == "Div" else None) or node for node in graph.nodes]
    return fuse_into_producers(graph.rewritten(nodes), _scaled)


def _norm(graph: Graph, node: Node, made: Mapping[str, Node]) -> Node | None:
    deviation, root = (made.get(name) for name in node.inputs[:2])
    if deviation is None or root is None or (deviation.op_type, root.op_type) != ("Sub", "Sqrt"):
        return None
    source = deviation.inputs[0]
    axis = first_reduced(graph, made.get(deviation.inputs[1]), "ReduceMean", source)
    moved = made.get(root.inputs[0])
    if axis is None or moved is None or moved.op_type != "Add":
        return None
    for variance, epsilon in (moved.inputs[:2], moved.inputs[1::-1]):
        average = made.get(variance)
        squares = made.get(average.inputs[0]) if average is not None else None
        number = one_number(graph, epsilon)
        if number is None or squares is None or not _is_square(graph, squares, node.inputs[0]):
            continue
        if first_reduced(graph, average, "ReduceMean", squares.outputs[0]) == axis:
            attributes = {"kernel": "layer_norm", "axis": axis, "epsilon": number}
            return Node("RowNorm", node.name, (source,), node.outputs, attributes)
    return None


def first_reduced(graph: Graph, node: Node | None, operator: str, source: str) -> int | None:
    """Return the first axis over which a node reduces ``source``, all behind it too, keeping the axes."""
    if node is None or node.op_type != operator or node.inputs[0] != source:
        return None
    view = NodeView.of(graph, node)
    if not view.integer("keepdims", 1) or (view.has(1) and not view.is_known(1)):
        return None
    axes, rank = reduced_axes(view), len(graph.shape(source))
    return axes[0] if axes and axes == tuple(range(axes[0], rank)) else None


def _is_square(graph: Graph, node: Node, name: str) -> bool:
    if node.op_type == "Pow":
        return node.inputs[0] == name and one_number(graph, node.inputs[1]) == 2.0
    return node.op_type == "Mul" and node.inputs == (name, name)


def _scaled(node: Node, sole: Sole, rewriter: Rewriter) -> tuple[Node, Node] | None:
    """Take in a product with a constant row, then a sum with one."""
    if node.op_type not in ("Add", "Mul") or len(node.inputs) != 2:
        return None
    for name, vector in (node.inputs[:2], node.inputs[1::-1]):
        norm = sole(name)
        if norm is None or norm.op_type != "RowNorm" or vector not in rewriter.graph.constants:
            continue
        if len(norm.inputs) == (1 if node.op_type == "Mul" else 2) and _is_row(rewriter.graph, norm, vector):
            return Node("RowNorm", node.name, (*norm.inputs, vector), node.outputs, norm.attributes), norm
    return None


def _is_row(graph: Graph, norm: Node, vector: str) -> bool:
    shape, axis = graph.shape(norm.inputs[0]), norm.attributes["axis"]
    assert isinstance(axis, int)  # noqa: S101  made above
    own = graph.shape(vector)
    return own[-(len(shape) - axis) :] == shape[axis:] and math.prod(own) == math.prod(shape[axis:])
