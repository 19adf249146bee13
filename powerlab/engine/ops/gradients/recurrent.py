"""The gradients of one step of the cells of a GRU and an LSTM."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Tape
from powerlab.engine.ops.view import NodeView


def gru_cell_gradient(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Give the sums of the input and of the state their gradients; nobody else reads the activated gates."""
    (_, product, before), (gates, _) = view.node.inputs, view.node.outputs
    of_given, of_before, of_product = tape.several("GruCellGradient", gates, product, before, gradients[1], made=3)
    return of_given, of_product, of_before


def lstm_cell_gradient(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Give both summands of the gates the same gradient; nobody else reads the activated gates."""
    before, (gates, cells, _) = view.node.inputs[2], view.node.outputs
    of_cells, of_hidden = (one or tape("Expand", tape.floats(0.0), tape.ints(view.shape(2))) for one in gradients[1:])
    of_gates, of_before = tape.several("LstmCellGradient", gates, before, cells, of_cells, of_hidden, made=2)
    return of_gates, of_gates, of_before
