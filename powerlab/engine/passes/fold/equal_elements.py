"""Elements picked from a constant whose elements are all equal: that one, whichever are picked.

RoBERTa's exports pick token types at computed positions from a buffer of zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import INT64, NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def fold_equal_elements(graph: Graph) -> Graph:
    """Return the graph with an Expand of one element where a GatherElements can pick nothing else."""
    return rewrite_nodes(graph, {"GatherElements": _picked})


def _picked(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if not rewriter.is_constant(node.inputs[0]):
        return None
    value = rewriter.value(node.inputs[0])
    if value.size == 0 or not np.all(value == value.flat[0]):
        return None
    (output,) = node.outputs
    one = rewriter.constant(f"{output}.element", value.reshape(-1)[:1])
    shape = rewriter.constant(f"{output}.shape", np.array(rewriter.shape(output), INT64))
    return [Node("Expand", node.name, (one, shape), node.outputs)]
