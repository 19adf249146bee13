"""What training does to BatchNormalization and Dropout becomes ordinary operators.

Models are exported so by mistake or on purpose (to measure their own uncertainty, networks drop at random while they
infer), and the standard says what they compute. Training itself (:mod:`powerlab.engine.training`) has other operators.

Source: https://onnx.ai/onnx/operators/onnx__BatchNormalization.html and onnx__Dropout.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.views import drop_ratio, drops, kept_elements
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.runtime.memory import check_memory


def _batch_norm(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    """Return the nodes that normalise by the batch's own statistics and move the running ones towards them."""
    if not view.integer("training_mode", 0):
        return None
    node, add = view.node, Expansion(view, rewriter)
    source, scale, bias, *running = node.inputs
    rank = len(view.shape(0))
    wide = (1, -1, *(1,) * (rank - 2))
    axes = add.ints(axis for axis in range(rank) if axis != 1)
    mean = add("ReduceMean", source, axes, keepdims=1)
    apart = add("Sub", source, mean)
    variance = add("ReduceMean", add("Mul", apart, apart), axes, keepdims=1)
    momentum = view.number("momentum", 0.9)
    for before, batch, output in zip(running, (mean, variance), (*node.outputs[1:3], "", ""), strict=False):
        if output:
            kept = add("Mul", before, add.floats(momentum))
            moved = add("Mul", add.reshape(batch, (-1,)), add.floats(1 - momentum))
            add("Add", kept, moved, output=output)
    deviation = add("Sqrt", add("Add", variance, add.floats(view.number("epsilon", 1e-5))))
    shaped = add("Mul", add("Div", apart, deviation), add.reshape(scale, wide))
    return add.ending(add("Add", shaped, add.reshape(bias, wide)))


def _dropout(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    """Return the nodes of a Dropout that drops or tells what it kept."""
    node, add = view.node, Expansion(view, rewriter)
    mask = node.outputs[1] if len(node.outputs) > 1 else ""
    if not drops(view) and not mask:
        return None
    check_memory(8 * math.prod(view.shape(0)), str(node), "the mask of what it keeps")
    kept = kept_elements(view)
    if mask:
        add("Identity", rewriter.constant(f"{mask}.kept", kept), output=mask)
    if not drops(view):
        return [*add.nodes, Node("Identity", f"{node.name}.all", node.inputs[:1], node.outputs[:1])]
    factors = add.floats(kept / np.float32(1 - drop_ratio(view)))
    return add.ending(add("Mul", node.inputs[0], factors))


_RULES = {"BatchNormalization": _batch_norm, "Dropout": _dropout}


def expand_training(graph: Graph) -> Graph:
    """Return the graph without BatchNormalization and Dropout nodes that train, or tell what they kept."""
    if graph.operators.isdisjoint(_RULES):
        return graph
    return rewrite_nodes(drop_dead(graph), _RULES)
