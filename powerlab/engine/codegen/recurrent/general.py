"""Recurrent cells of any form: RNN, GRU, and LSTM with peepholes, other functions, or sequences of different lengths.

The numbers that a kernel ``recurrence_*`` wants beside its weights: see native/engine/kernels/recurrent/recurrence.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.recurrent.cells import (
    Direction,
    copy_units,
    directions_of,
    emit_gates,
    initial_state,
    packed_states,
    put_last_states,
    rows_of_units,
)
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.cells import CellFunction
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats

_BIAS, _PEEPHOLES, _STATES = 3, 4, 5

_CELL_NUMBERS = 16
_STATE_ROWS = 4
"""Hidden units after even and odd steps, cells, and hidden units times reset gates."""


def lower_recurrence(builder: Builder, node: Node) -> None:
    """Lower a Recurrence, one direction after the other."""
    resets_before = node.attributes["cell"] == "GRU" and bool(node.attributes["resets_before"])
    kernel = f"recurrence_{str(node.attributes['cell']).lower()}{'_reset' if resets_before else ''}"
    for cell in directions_of(builder, node):
        result, out = rows_of_units(builder, cell)
        state = builder.in_arena(cell.own_units(_STATE_ROWS))
        of_gates, of_candidate = _biases(builder, cell, resets_before=resets_before)
        builder.emit(
            kernel,
            node,
            out,
            emit_gates(builder, cell, of_gates),
            initial_state(builder, cell, node.inputs[_STATES:]),
            scratch=state,
            weights=packed_states(builder, cell),
            bias=_cell_numbers(builder, cell, of_candidate),
            rounds=cell.steps * (2 if resets_before else 1),
            backwards=int(cell.backwards),
        )
        if out is not result:
            copy_units(builder, f"{node.outputs[0]} to rows", result, out)
        last = [
            state.seen_as(replace(state.layout, n=1), row * state.layout.image) for row in ((cell.steps - 1) % 2, 2)
        ]
        put_last_states(builder, cell, last)


def _biases(builder: Builder, cell: Direction, *, resets_before: bool) -> tuple[Floats | None, Floats]:
    """Return what is added to all gates, shape (gates * hidden, 1), and what a GRU's reset gate is multiplied with."""
    name, hidden = cell.node.inputs[_BIAS], cell.hidden
    inside = np.zeros(hidden, np.float32)
    if not name:
        return None, inside
    of_inputs, of_states = builder.constant(name)[cell.direction].reshape(2, -1)
    summed = of_inputs + of_states
    if cell.node.attributes["cell"] == "GRU" and not resets_before:
        inside = of_states[2 * hidden :]
        summed[2 * hidden :] = of_inputs[2 * hidden :]
    return summed.reshape(-1, 1), inside


def _cell_numbers(builder: Builder, cell: Direction, of_candidate: Floats) -> Floats:
    """Return the numbers of the cell, the lengths of its sequences, and the numbers of its units."""
    node = cell.node
    functions = cast("Sequence[Sequence[CellFunction]]", node.attributes["functions"])[cell.direction]
    head = np.zeros(_CELL_NUMBERS, np.float32)
    described = [number(node, "clip"), float(bool(node.attributes["couples"]))]
    for function in functions:
        described += [function.code, function.alpha, function.beta]
    head[: len(described)] = described
    lengths = np.zeros(divide_up(cell.batch, cell.width) * cell.width, np.float32)
    lengths[: cell.batch] = integers(node, "lengths") or cell.steps
    of_units = [of_candidate]
    if node.attributes["cell"] == "LSTM":
        peepholes = node.inputs[_PEEPHOLES]
        of_units = list(
            builder.constant(peepholes)[cell.direction].reshape(3, -1)
            if peepholes
            else np.zeros((3, cell.hidden), np.float32)
        )
    filled = np.zeros((len(of_units), cell.filled), np.float32)
    filled[:, : cell.hidden] = of_units
    return np.concatenate((head, lengths, filled.reshape(-1)))
