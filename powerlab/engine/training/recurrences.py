"""LSTM, GRU and RNN as operators that have gradients, one step of time after the other.

Their gradients are then those of the operators: backpropagation through time (P. J. Werbos, Backpropagation through
time: what it does and how to do it, Proceedings of the IEEE 78, 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops import training_operator
from powerlab.engine.ops.recurrent import GATES, Recurrence, batch_comes_first, recurrence
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_WEIGHTS, _RECURRENCE, _BIAS, _PEEPHOLES = 1, 2, 3, 7
_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}
_SWAPPED = (1, 0, 2)

State = tuple[str, ...]
"""The hidden state and, of an LSTM, the cell: (batch, hidden) each."""


class _Cell:
    """One direction of a recurrence.

    Args:
        view: the node.
        add: takes the nodes.
        weights: (gates * hidden, inputs) and (gates * hidden, hidden).
        biases: of both, or none.
        whole: whether a step of the cell is one operator, of an LSTM or of a GRU that resets behind its product.
    """

    def __init__(
        self, view: NodeView, add: Expansion, weights: tuple[str, str], biases: tuple[str, ...], *, whole: bool
    ) -> None:
        self._whole = whole
        self._add, self._sizes, self._operator = add, recurrence(view), view.node.op_type
        self._of_input, self._of_state = weights
        self._biases = biases
        if biases and self._operator != "GRU":  # both are added to the same gates: once for all steps
            self._biases = (add("Add", *biases), "")

    def run(self, x: str, state: State, *, backwards: bool) -> tuple[list[str], State]:
        """Return the hidden state of each step, and the last state; x is (steps * batch, inputs)."""
        steps, order = self._sizes.steps, -1 if backwards else 1
        gates = self._product(x, self._of_input, 0)
        each = self._add.several("Split", gates, made=steps, axis=0, num_outputs=steps) if steps > 1 else (gates,)
        after = {"GRU": self._gru, "LSTM": self._lstm, "RNN": self._rnn}[self._operator]
        made = []
        for given in each[::order]:
            state = after(given, state)
            made.append(state[0])
        return made[::order], state

    def _product(self, x: str, weights: str, which: int) -> str:
        bias = self._biases[which] if self._biases else ""
        return self._add("Gemm", x, weights, *((bias,) if bias else ()), transB=1)

    def _parts(self, tensor: str, *gates: int, axis: int = 1) -> tuple[str, ...]:
        """Return a tensor in parts of as many gates each."""
        sizes = self._add.ints(count * self._sizes.hidden for count in gates)
        return self._add.several("Split", tensor, sizes, made=len(gates), axis=axis)

    def _lstm(self, given: str, state: State) -> State:
        add, (hidden, cell) = self._add, state
        product = self._product(hidden, self._of_state, 1)
        if self._whole:
            _, cell, hidden = add.several("LstmCell", given, product, cell, made=3)
            return hidden, cell
        opened, candidate = self._parts(add("Add", given, product), 3, 1)
        into, out, forget = self._parts(add("Sigmoid", opened), 1, 1, 1)
        cell = add("Add", add("Mul", forget, cell), add("Mul", into, add("Tanh", candidate)))
        return add("Mul", out, add("Tanh", cell)), cell

    def _rnn(self, given: str, state: State) -> State:
        return (self._add("Tanh", self._add("Add", given, self._product(state[0], self._of_state, 1))),)

    def _gru(self, given: str, state: State) -> State:
        add, (hidden,) = self._add, state
        if self._whole and not self._sizes.resets_before:
            _, hidden = add.several("GruCell", given, self._product(hidden, self._of_state, 1), hidden, made=2)
            return (hidden,)
        given_gates, given_candidate = self._parts(given, 2, 1)
        if self._sizes.resets_before:
            of_gates, of_candidate = self._parts(self._of_state, 2, 1, axis=0)
            biases = self._parts(self._biases[1], 2, 1, axis=0) if self._biases else ()
            gates = add("Gemm", hidden, of_gates, *biases[:1], transB=1)
        else:
            gates, moved = self._parts(self._product(hidden, self._of_state, 1), 2, 1)
        update, reset = self._parts(add("Sigmoid", add("Add", given_gates, gates)), 1, 1)
        if self._sizes.resets_before:
            moved = add("Gemm", add("Mul", reset, hidden), of_candidate, *biases[1:], transB=1)
        else:
            moved = add("Mul", reset, moved)
        candidate = add("Tanh", add("Add", given_candidate, moved))
        return (add("Add", candidate, add("Mul", update, add("Sub", hidden, candidate))),)


def _unrolled(view: NodeView, rewriter: Rewriter, *, whole_cells: bool) -> Sequence[Node]:
    node, sizes, add = view.node, recurrence(view), Expansion(view, rewriter, training_operator)
    if not sizes.is_usual(node.op_type) or (node.op_type == "LSTM" and view.has(_PEEPHOLES)):
        view.fail(
            "cannot be trained: the engine has gradients of recurrences with the usual functions over all steps, "
            "without clip, input_forget and peepholes"
        )
    swaps, batch, hidden = batch_comes_first(view), sizes.batch, sizes.hidden
    x = add("Transpose", node.inputs[0], perm=_SWAPPED) if swaps else node.inputs[0]
    flat = add.reshape(x, (sizes.steps * batch, sizes.inputs))
    given = [node.input(index) for index in _STATES[node.op_type]]
    zeros = "" if all(given) else add.floats(np.zeros((batch, hidden)))
    states = [
        [zeros] * sizes.directions
        if not name
        else _each(add, add("Transpose", name, perm=_SWAPPED) if swaps else name, sizes, (batch, hidden))
        for name in given
    ]
    weights = [_each(add, node.inputs[index], sizes, view.shape(index)[1:]) for index in (_WEIGHTS, _RECURRENCE)]
    rows = GATES[node.op_type] * hidden
    biases = _each(add, node.inputs[_BIAS], sizes, (2 * rows,)) if view.has(_BIAS) else [""] * sizes.directions
    ran = []
    for direction in range(sizes.directions):
        halves = (
            add.several("Split", biases[direction], add.ints((rows, rows)), made=2, axis=0) if biases[direction] else ()
        )
        cell = _Cell(view, add, (weights[0][direction], weights[1][direction]), halves, whole=whole_cells)
        backwards = view.text("direction", "forward") == "reverse" or direction == 1
        ran.append(cell.run(flat, tuple(state[direction] for state in states), backwards=backwards))
    _put_out(view, add, ran)
    return add.nodes


def _each(add: Expansion, tensor: str, sizes: Recurrence, shape: tuple[int, ...]) -> list[str]:
    """Return a tensor (directions, ...) of each direction, in its shape."""
    count = sizes.directions
    parts = add.several("Split", tensor, made=count, axis=0, num_outputs=count) if count > 1 else (tensor,)
    return [add.reshape(part, shape) for part in parts]


def _put_out(view: NodeView, add: Expansion, ran: Sequence[tuple[list[str], State]]) -> None:
    """Add the nodes that make what the recurrence gives, as far as it has names."""
    sizes, swaps = recurrence(view), batch_comes_first(view)
    state = (sizes.directions, sizes.batch, sizes.hidden)
    every = [hidden for step in zip(*(made for made, _ in ran), strict=True) for hidden in step]
    last = [list(states) for states in zip(*(after for _, after in ran), strict=True)]
    shapes = ((sizes.steps, *state), *[state] * len(last))
    orders = ((2, 0, 1, 3), *[_SWAPPED] * len(last))
    for output, parts, shape, order in zip(view.node.outputs, (every, *last), shapes, orders, strict=False):
        if output:
            joined = add.reshape(add("Concat", *parts, axis=0), shape)
            add.ending(add("Transpose", joined, perm=order) if swaps else joined, output)


def unroll_recurrences(graph: Graph, *, whole_cells: bool = False) -> Graph:
    """Return the graph with LSTM, GRU and RNN composed of other operators.

    Args:
        graph: the network.
        whole_cells: whether a step of a cell is one operator where that can be, which the processor alone has: of an
            LSTM, and of a GRU that resets behind its product.

    Raises:
        PowerlabError: one is of a kind that has no gradient; names it.
    """
    return rewrite_nodes(graph, dict.fromkeys(_STATES, partial(_unrolled, whole_cells=whole_cells)))
