"""Functions of one number get all their numbers; a product with one's own sigmoid becomes Silu."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.functions import FUNCTIONS, approximates_by_tanh
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import each, strided
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers, rewrite_nodes


def _with_numbers(view: NodeView, _rewriter: Rewriter) -> Sequence[Node] | None:
    node, function = view.node, FUNCTIONS[view.node.op_type]
    if view.dtype(0) != FLOAT32:
        kernel = strided(function.kernel, view.dtype(0))
        return [each(node.name, kernel, node.inputs, node.outputs[0], view.dtype(0))]
    if node.attributes.keys() == function.numbers.keys():
        return None
    return [Node(node.op_type, node.name, node.inputs, node.outputs, function.given(view))]


def _gelu(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    return [Node("GeluTanh" if approximates_by_tanh(view) else "Gelu", node.name, node.inputs, node.outputs)]


def _silu(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
    """Source: Elfwing et al., https://arxiv.org/abs/1702.03118; ONNX has no operator of that name."""
    if node.op_type != "Mul":
        return None
    for itself, other in (node.inputs[:2], node.inputs[1::-1]):
        gate = sole(other)
        if gate is not None and gate.op_type == "Sigmoid" and gate.inputs[0] == itself:
            return Node("Silu", node.name, (itself,), node.outputs), gate
    return None


def lower_functions(graph: Graph) -> Graph:
    """Return the graph with functions in the form the native core takes; before arithmetic is lowered."""
    rules = {**dict.fromkeys(FUNCTIONS, _with_numbers), "Gelu": _gelu}
    return fuse_into_producers(rewrite_nodes(graph, rules), _silu)
