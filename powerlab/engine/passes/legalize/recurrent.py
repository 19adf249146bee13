"""LSTM, GRU and RNN: the usual LSTM becomes FusedLstm, any other Recurrence; steps first, both states or neither."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.recurrent import Recurrence, batch_comes_first, recurrence
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_WEIGHTS, _STATES = (1, 2, 3), {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
_PEEPHOLES = 7
_SWAPPED = (1, 0, 2)
_BATCH_FIRST = (2, 0, 1, 3)
"""From [step][direction][sequence][number] to [sequence][step][direction][number]."""


def _recurrent(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, sizes = view.node, recurrence(view)
    before: list[Node] = []
    weights = tuple(node.input(index) for index in _WEIGHTS)
    peepholes = _unless_zero(view, _PEEPHOLES) if node.op_type == "LSTM" else ""
    for index in (*_WEIGHTS, _PEEPHOLES):
        if view.has(index):
            view.known(index)
    x, states = node.inputs[0], [_unless_zero(view, index) for index in _STATES[node.op_type]]
    if batch_comes_first(view):
        x, *states = (_swapped(name, rewriter, before) for name in (x, *states))
    states = [*_both_or_neither(node, states, sizes, rewriter)]
    attributes: dict[str, object] = {"direction": view.text("direction", "forward")}
    if node.op_type == "LSTM" and not peepholes and sizes.is_usual("LSTM"):
        operator, inputs = "FusedLstm", (x, *weights, *states)
    else:
        operator, inputs = "Recurrence", (x, *weights, peepholes, *states)
        attributes |= _of_cell(node, sizes)
    if not batch_comes_first(view):
        return [*before, Node(operator, node.name, inputs, node.outputs, attributes)]
    inner, after = _swapped_back(node, sizes, rewriter)
    return [*before, Node(operator, node.name, inputs, inner, attributes), *after]


def _of_cell(node: Node, sizes: Recurrence) -> dict[str, object]:
    return {
        "cell": node.op_type,
        "functions": sizes.functions,
        "clip": sizes.clip,
        "couples": sizes.couples,
        "resets_before": sizes.resets_before,
        "lengths": sizes.lengths,
    }


def _unless_zero(view: NodeView, index: int) -> str:
    """Return an input's name, or nothing where it is known to be all zeros."""
    value = view.constant(index)
    return "" if value is not None and not value.any() else view.node.input(index)


def _swapped(name: str, rewriter: Rewriter, nodes: list[Node]) -> str:
    """Return the tensor with its first two axes swapped, by a node added to ``nodes`` unless it is a constant."""
    if not name:
        return name
    base_name = f"{name}.steps_first"
    if name in rewriter.graph.constants:
        return rewriter.constant(base_name, np.ascontiguousarray(rewriter.value(name).transpose(_SWAPPED)))
    first, second, numbers = rewriter.graph.shape(name)
    made = rewriter.tensor(base_name, (second, first, numbers))
    nodes.append(Node("Transpose", base_name, (name,), (made,), {"perm": _SWAPPED}))
    return made


def _both_or_neither(node: Node, states: Sequence[str], sizes: Recurrence, rewriter: Rewriter) -> Sequence[str]:
    """Return the initial hidden state and cell; zeros stand for one left out beside the other."""
    if not any(states):
        return states
    zeros = np.zeros((sizes.directions, sizes.batch, sizes.hidden), np.float32)
    return [name or rewriter.constant(f"{node.outputs[0]}.zeros", zeros) for name in states]


def _swapped_back(node: Node, sizes: Recurrence, rewriter: Rewriter) -> tuple[tuple[str, ...], list[Node]]:
    """Return names for a node's outputs with the steps first, and the nodes that make its own outputs of them."""
    state = (sizes.directions, sizes.batch, sizes.hidden)
    shapes = ((sizes.steps, *state), state, state)
    orders = (_BATCH_FIRST, _SWAPPED, _SWAPPED)
    inner: list[str] = []
    nodes: list[Node] = []
    for name, shape, order in zip(node.outputs, shapes, orders, strict=False):
        inner.append(rewriter.tensor(f"{name}.steps_first", shape) if name else "")
        if name:
            nodes.append(Node("Transpose", f"{name}.batch_first", (inner[-1],), (name,), {"perm": order}))
    return tuple(inner), nodes


def lower_recurrences(graph: Graph) -> Graph:
    """Return the graph with FusedLstm and Recurrence as its only recurrences."""
    return rewrite_nodes(graph, dict.fromkeys(_STATES, _recurrent))
