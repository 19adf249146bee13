"""LSTM, after Hochreiter and Schmidhuber (1997) and Gers et al. (2000).

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import FLOAT32, NodeView, Spec

GATES = 4
"""Input, output and forget gate and the cell's candidate, in ONNX's order."""

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
"""Where time runs → how many LSTMs that are."""

_X, _WEIGHTS, _RECURRENCE, _BIAS, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLES = range(8)
_USUAL = ("Sigmoid", "Tanh", "Tanh")


@dataclass(frozen=True, slots=True, kw_only=True)
class LstmSizes:
    """Sizes of an LSTM node: time steps, sequences side by side, numbers in, numbers out, and LSTMs in it."""

    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int


def batch_comes_first(view: NodeView) -> bool:
    """Say whether sequences come before time steps in the node's tensors (``layout``, since opset 14)."""
    layout = view.integer("layout", 0)
    if layout not in (0, 1):
        view.fail(f"has layout {layout}, which must be 0 or 1")
    return layout == 1


def lstm_sizes(view: NodeView) -> LstmSizes:
    """Return the sizes of an LSTM.

    Raises:
        PowerlabError: the inputs do not fit together, or the node asks for what the engine does not compute.
    """
    _refuse_variants(view)
    direction = view.text("direction", "forward")
    if direction not in DIRECTIONS:
        view.fail(f"has direction {direction[:20]!r}; known are {', '.join(DIRECTIONS)}")
    steps, batch, inputs = view.floats(_X, 3)
    if batch_comes_first(view):
        steps, batch = batch, steps
    hidden = view.floats(_RECURRENCE, 3)[2]
    sizes = LstmSizes(steps=steps, batch=batch, inputs=inputs, hidden=hidden, directions=DIRECTIONS[direction])
    if view.integer("hidden_size", hidden) != hidden:
        view.fail(f"has hidden_size {view.integer('hidden_size', hidden)}, but its weights are for {hidden}")
    rows = GATES * hidden
    state = (batch, sizes.directions, hidden) if batch_comes_first(view) else (sizes.directions, batch, hidden)
    _check_shape(view, _WEIGHTS, (sizes.directions, rows, inputs))
    _check_shape(view, _RECURRENCE, (sizes.directions, rows, hidden))
    _check_shape(view, _BIAS, (sizes.directions, 2 * rows))
    _check_shape(view, _HIDDEN, state)
    _check_shape(view, _CELL, state)
    lengths = view.int_values(_LENGTHS) if view.has(_LENGTHS) else (steps,) * batch
    if lengths != (steps,) * batch:
        view.fail(f"has sequences of the lengths {lengths[:8]}; the engine takes {batch} of {steps} steps each")
    return sizes


def _refuse_variants(view: NodeView) -> None:
    activations = view.texts("activations", _USUAL)
    if len(activations) % 3 or any(activations[i : i + 3] != _USUAL for i in range(0, len(activations), 3)):
        view.fail(f"has the activations {', '.join(activations)[:80]}; the engine takes {', '.join(_USUAL)} only")
    if view.has_attribute("clip"):
        view.fail("clips what goes into its activations (clip), which the engine does not; export the model without it")
    if view.integer("input_forget", 0):
        view.fail("couples its input and forget gates (input_forget), which the engine does not")
    if view.has(_PEEPHOLES):
        view.fail("has peephole connections (input 8), which the engine does not compute")


def _check_shape(view: NodeView, index: int, wanted: tuple[int, ...]) -> None:
    if view.has(index) and view.floats(index) != wanted:
        view.fail(f"needs input {index + 1} of the shape {wanted}, but it has {view.floats(index)}")


def _sequence(view: NodeView) -> Spec:
    """Return Y: the hidden state after every step."""
    sizes = lstm_sizes(view)
    if batch_comes_first(view):
        return (sizes.batch, sizes.steps, sizes.directions, sizes.hidden), FLOAT32
    return (sizes.steps, sizes.directions, sizes.batch, sizes.hidden), FLOAT32


def _last_states(view: NodeView) -> tuple[Spec, ...]:
    """Return Y_h and Y_c: the hidden state and the cell after the last step."""
    sizes = lstm_sizes(view)
    first, second = (sizes.directions, sizes.batch)[:: -1 if batch_comes_first(view) else 1]
    state = (first, second, sizes.hidden), FLOAT32
    return state, state


LSTM = Operator(_sequence, infer_more=_last_states)
