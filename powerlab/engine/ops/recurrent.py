"""LSTM, after Hochreiter and Schmidhuber (1997) and Gers et al. (2000); GRU, after Cho et al. (2014); RNN.

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html, https://onnx.ai/onnx/operators/onnx__GRU.html,
https://onnx.ai/onnx/operators/onnx__RNN.html
"""

from __future__ import annotations

import math

from msgspec import Struct

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.cells import CellFunction, cell_functions
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
"""Operator → its gates, in ONNX's order: update, reset, candidate; input, output, forget, candidate; the state itself.
"""

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
"""Where time runs → how many cells that are."""

_FUNCTIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}

_X, _WEIGHTS, _RECURRENCE, _BIAS, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLES = range(8)


class Recurrence(Struct, frozen=True, kw_only=True):
    """A recurrent node in words of its own.

    Attributes:
        steps: of time.
        batch: sequences side by side.
        inputs: numbers in.
        hidden: numbers out.
        directions: cells in the node, each with weights of its own.
        lengths: of the sequences, where not all have all steps; empty otherwise.
        functions: of each direction.
        clip: what goes into functions lies between this and its negative; infinite where nothing is clipped.
        couples: an LSTM's forget gate is what its input gate leaves.
        resets_before: a GRU's reset gate comes before the product with the recurrent weights.
    """

    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int
    lengths: tuple[int, ...]
    functions: tuple[tuple[CellFunction, ...], ...]
    clip: float
    couples: bool
    resets_before: bool

    def is_usual(self, operator: str) -> bool:
        """Say whether all steps are taken, functions are the usual ones, and nothing is clipped or coupled."""
        usual = tuple(CellFunction(name=name.lower()) for name in _FUNCTIONS[operator])
        plain = self.clip == math.inf and not self.couples and not self.lengths
        return plain and all(functions == usual for functions in self.functions)


def batch_comes_first(view: NodeView) -> bool:
    """Say whether sequences come before time steps in the node's tensors (``layout``, since opset 14)."""
    layout = view.integer("layout", 0)
    if layout not in (0, 1):
        view.fail(f"has layout {layout}, which must be 0 or 1")
    return layout == 1


def recurrence(view: NodeView) -> Recurrence:
    """Return what a recurrent node asks for.

    Raises:
        PowerlabError: the inputs do not fit together.
    """
    operator = view.node.op_type
    direction = view.text("direction", "forward")
    if direction not in DIRECTIONS:
        view.fail(f"has direction {direction[:20]!r}; known are {', '.join(DIRECTIONS)}")
    directions = DIRECTIONS[direction]
    steps, batch, inputs = view.floats(_X, 3)
    if batch_comes_first(view):
        steps, batch = batch, steps
    hidden = view.floats(_RECURRENCE, 3)[2]
    if view.integer("hidden_size", hidden) != hidden:
        view.fail(f"has hidden_size {view.integer('hidden_size', hidden)}, but its weights are for {hidden}")
    rows = GATES[operator] * hidden
    state = (batch, directions, hidden) if batch_comes_first(view) else (directions, batch, hidden)
    _check_shape(view, _WEIGHTS, (directions, rows, inputs))
    _check_shape(view, _RECURRENCE, (directions, rows, hidden))
    _check_shape(view, _BIAS, (directions, 2 * rows))
    _check_shape(view, _HIDDEN, state)
    if operator == "LSTM":
        _check_shape(view, _CELL, state)
        _check_shape(view, _PEEPHOLES, (directions, 3 * hidden))
    clip = view.number("clip", 0.0)
    return Recurrence(
        steps=steps,
        batch=batch,
        inputs=inputs,
        hidden=hidden,
        directions=directions,
        lengths=_lengths(view, steps, batch),
        functions=cell_functions(view, _FUNCTIONS[operator], directions),
        clip=clip if clip > 0 else math.inf,
        couples=bool(view.integer("input_forget", 0)),
        resets_before=not view.integer("linear_before_reset", 0),
    )


def _lengths(view: NodeView, steps: int, batch: int) -> tuple[int, ...]:
    """Return the lengths of the sequences; none where all have all steps."""
    if not view.has(_LENGTHS):
        return ()
    lengths = view.int_values(_LENGTHS)
    if len(lengths) != batch or not all(0 <= length <= steps for length in lengths):
        view.fail(f"has sequences of the lengths {lengths[:8]}; it needs {batch} from 0 to {steps}")
    return () if set(lengths) == {steps} else lengths


def _check_shape(view: NodeView, index: int, wanted: tuple[int, ...]) -> None:
    if (index == _WEIGHTS or view.has(index)) and view.floats(index) != wanted:
        view.fail(f"needs input {index + 1} of the shape {wanted}, but it has {view.floats(index)}")


def _sequence(view: NodeView) -> Spec:
    """Return Y: the hidden state after every step."""
    sizes = recurrence(view)
    if batch_comes_first(view):
        return (sizes.batch, sizes.steps, sizes.directions, sizes.hidden), FLOAT32
    return (sizes.steps, sizes.directions, sizes.batch, sizes.hidden), FLOAT32


def _last_states(view: NodeView) -> tuple[Spec, ...]:
    """Return Y_h and, of an LSTM, Y_c: the hidden state and the cell after the last step."""
    sizes = recurrence(view)
    first, second = (sizes.directions, sizes.batch)[:: -1 if batch_comes_first(view) else 1]
    state = (first, second, sizes.hidden), FLOAT32
    return (state, state) if view.node.op_type == "LSTM" else (state,)


RECURRENT = Operator(_sequence, infer_more=_last_states)
