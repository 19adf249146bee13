"""The dispatches of recurrent nodes, one direction after the other."""

from __future__ import annotations

import numpy as np

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.gpu.activations import PLAIN
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolved import Convolution, Window
from powerlab.engine.gpu.lowering.methods import emit_conv
from powerlab.engine.gpu.lowering.recurrent.cells import Cell, Floats, cell_of
from powerlab.engine.gpu.lowering.weights import KnownWeights
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_CELLS = {"LSTM": 0, "GRU": 1, "RNN": 2}
_GPU_LANES, _GPU_SLICES = 128, 16
"""Of a work group on a GPU, where so many lanes share the sums of a hidden unit."""
_STATES = 4
"""Rows of units that the kernel keeps for itself."""


def lower_recurrent(builder: Builder, node: Node) -> None:
    """Lower a FusedLstm or a Recurrence, one direction after the other."""
    steps, batch, inputs = builder.graph.shape(node.inputs[0])
    directions, _, units = builder.graph.shape(node.inputs[2])
    x = builder.rows(node.inputs[0])
    if inputs % 4:
        rows, x = x, builder.room(-(-inputs // 4) * 4 * steps * batch)
        builder.convert("pack", f"{node.inputs[0]} to vectors", x, rows, Image(steps * batch, inputs, 1, 1))
    hidden, cells = (builder.rows(name) if name else None for name in _initial(node))
    out, last_hidden, last_cells = (
        builder.new_rows(name) if name else builder.room(size * directions * batch * units)
        for name, size in zip((*node.outputs, "", "")[:3], (steps, 1, 1), strict=True)
    )
    known = integers(node, "lengths") if "lengths" in node.attributes else ()
    lengths = builder.constant(np.array(known or [steps] * batch, np.float32), floats=True)
    for direction in range(directions):
        cell = cell_of(builder, node, direction)
        gates = _emit_gates(builder, node, cell, x, steps * batch)
        _emit_steps(
            builder,
            node,
            cell,
            (out, last_hidden, last_cells, gates, lengths, hidden, cells),
            (direction, directions, steps, batch),
        )


def _initial(node: Node) -> tuple[str, str]:
    """Return the names of the initial hidden units and cells, empty where they are zeros."""
    hidden, cells, *_ = (*node.inputs[4 if node.op_type == "FusedLstm" else 5 :], "", "")
    return hidden, cells


def _by_unit(gates: Floats) -> Floats:
    """Return gates (gates, units, n) unit by unit, four a unit, those that fill up being 0: (units, 4, n)."""
    filled = np.zeros((gates.shape[1], 4, gates.shape[2]), np.float32)
    filled[:, : len(gates)] = gates.transpose(1, 0, 2)
    return filled


def _emit_gates(builder: Builder, node: Node, cell: Cell, x: Storage, rows: int) -> Storage:
    """Append what inputs and biases add to the gates, and return where that lies: [step][sequence][unit][4]."""
    units, inputs = cell.weights.shape[1:]
    gates = builder.room(rows * 4 * units)
    conv = Convolution(
        x=Image(rows, inputs, 1, 1),
        made=Image(rows, 4 * units, 1, 1),
        window=Window(kernel=(1, 1)),
        weights=KnownWeights(
            _by_unit(cell.weights).reshape(4 * units, inputs, 1, 1), _by_unit(cell.bias[:, :, None]).reshape(-1)
        ),
        finish=PLAIN,
    )
    emit_conv(builder, node, (gates, x, None), conv)
    return gates


def _emit_steps(
    builder: Builder,
    node: Node,
    cell: Cell,
    places: tuple[Storage, Storage, Storage, Storage, Storage, Storage | None, Storage | None],
    sizes: tuple[int, int, int, int],
) -> None:
    """Append the steps of one direction; places: of result, last states, gates, lengths, and initial states."""
    out, last_hidden, last_cells, gates, lengths, hidden, cells = places
    direction, directions, steps, batch = sizes
    units = len(cell.of_units)
    weights = builder.constant(np.ascontiguousarray(_by_unit(cell.recurrence).transpose(2, 0, 1)).reshape(-1))
    of_units, state = builder.constant(cell.of_units.reshape(-1), floats=True), builder.room(_STATES * batch * units, 4)
    row = batch * units
    numbers = [cell.clip, *(one.alpha for one in cell.functions), *(one.beta for one in cell.functions)]
    lanes, slices = builder.target.lanes(_GPU_LANES), 1 if builder.target.broadcasts else _GPU_SLICES
    for turn, step in enumerate(range(steps)[:: -1 if cell.backwards else 1]):
        for phase in (1, 2) if cell.resets_before else (0,):
            flags = (turn == 0, hidden is not None, turn == steps - 1)
            builder.emit(
                "recurrent",
                node,
                (
                    out,
                    state,
                    last_hidden,
                    last_cells,
                    gates,
                    weights,
                    of_units,
                    lengths,
                    hidden or gates,
                    cells or gates,
                ),
                constants=(
                    *(lanes, _CELLS[cell.kind], phase, *map(int, flags)),
                    *(*(one.code for one in cell.functions), slices),
                ),
                push=(
                    *map(float, numbers),
                    *(int(cell.couples), units, batch, step, turn),
                    *((step * directions + direction) * row, direction * row),
                ),
                groups=(-(-units * slices // lanes), batch, 1),
                written=4,
            )
