"""One direction of a recurrent node: its weights, and what its cell computes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.cells import CellFunction

Floats = NDArray[np.float32]

_USUAL = (CellFunction(name="sigmoid"), CellFunction(name="tanh"), CellFunction(name="tanh"))


class Cell(Struct, frozen=True, kw_only=True):
    """One direction of a recurrent node.

    Attributes:
        kind: LSTM, GRU or RNN.
        weights: of inputs, shape (gates, units, inputs).
        recurrence: of hidden units, shape (gates, units, units).
        bias: shape (gates, units): what does not depend on the state.
        of_units: shape (units, 4): peepholes, or a GRU's bias inside its reset.
        functions: three; what the cell has no use for is anything.
        clip: of what goes into functions.
        couples: whether an LSTM's forget gate is what its input gate leaves.
        resets_before: whether a GRU resets before the product.
        backwards: whether time runs so.
    """

    kind: str
    weights: Floats
    recurrence: Floats
    bias: Floats
    of_units: Floats
    functions: tuple[CellFunction, ...]
    clip: float
    couples: bool
    resets_before: bool
    backwards: bool


def cell_of(builder: Builder, node: Node, direction: int) -> Cell:
    """Return the cell of a direction of a FusedLstm or a Recurrence."""
    usual = node.op_type == "FusedLstm"
    kind = "LSTM" if usual else str(node.attributes["cell"])
    weights, recurrence = (builder.graph.constants[name][direction] for name in node.inputs[1:3])
    units = recurrence.shape[1]
    shape = (len(recurrence) // units, units, -1)
    resets_before = kind == "GRU" and bool(node.attributes["resets_before"])
    of_inputs, of_states = np.zeros((2, *shape[:2]), np.float32)
    if node.inputs[3]:
        of_inputs, of_states = builder.graph.constants[node.inputs[3]][direction].reshape(2, *shape[:2])
    bias, of_units = of_inputs + of_states, np.zeros((units, 4), np.float32)
    if kind == "GRU" and not resets_before:
        bias[2], of_units[:, 0] = of_inputs[2], of_states[2]
    if not usual and node.inputs[4]:
        of_units[:, :3] = builder.graph.constants[node.inputs[4]][direction].reshape(3, units).T
    functions = cast("Sequence[Sequence[CellFunction]]", (_USUAL,) * 2 if usual else node.attributes["functions"])
    return Cell(
        kind=kind,
        weights=weights.reshape(shape),
        recurrence=recurrence.reshape(shape),
        bias=bias,
        of_units=of_units,
        functions=(*functions[direction], *_USUAL)[:3],
        clip=math.inf if usual else number(node, "clip"),
        couples=not usual and bool(node.attributes["couples"]),
        resets_before=resets_before,
        backwards=direction == 1 or node.attributes["direction"] == "reverse",
    )
