"""LSTM: what inputs and biases add to the gates is one matrix product over all steps; then a dispatch a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu.activations import PLAIN
from powerlab.engine.gpu.builder import Builder, Image
from powerlab.engine.gpu.lowering.convolution import Convolution, Window, emit_conv
from powerlab.engine.ir.graph import Node

Floats = NDArray[np.float32]

_GATES = 4
_LANES = 32


def lower_lstm(builder: Builder, node: Node) -> None:
    """Lower a FusedLstm of one direction that starts from zeros.

    Raises:
        PowerlabError: it has two directions, initial states, inputs that fill no blocks, or further outputs.
    """
    steps, batch, inputs = builder.graph.shape(node.inputs[0])
    directions, _, hidden = builder.graph.shape(node.inputs[2])
    if directions > 1 or any(node.inputs[4:]) or any(node.outputs[1:]) or inputs % 4:
        raise PowerlabError(
            f"{node} has two directions, initial states, last states that are read, or inputs that are no multiple "
            "of 4, which the engine does not on a GPU yet; use the device cpu for this model."
        )
    backwards = node.attributes["direction"] == "reverse"
    weights, recurrence = (_unit_first(builder.graph.constants[name][0], hidden) for name in node.inputs[1:3])
    bias = np.zeros(_GATES * hidden, np.float32)
    if node.inputs[3]:
        both = builder.graph.constants[node.inputs[3]][0].reshape(2, -1)
        bias = _unit_first((both[0] + both[1])[:, None], hidden).reshape(-1)
    x, gates = builder.rows(node.inputs[0]), builder.room(steps * batch * _GATES * hidden)
    conv = Convolution(
        x=Image(steps * batch, inputs, 1, 1),
        made=Image(steps * batch, _GATES * hidden, 1, 1),
        window=Window(kernel=(1, 1)),
        weights=weights[:, :, None, None],
        bias=bias,
        finish=PLAIN,
    )
    emit_conv(builder, node, (gates, x, None), conv)
    columns = builder.constant(np.ascontiguousarray(recurrence.T).reshape(-1))
    out, cells = builder.new_rows(node.outputs[0]), builder.room(batch * hidden, 4)
    order = range(steps)[::-1] if backwards else range(steps)
    row, before = batch * hidden, 0
    for index, step in enumerate(order):
        builder.emit(
            "lstm",
            node,
            (out, cells, gates, columns),
            constants=(_LANES, int(index == 0)),
            push=(hidden, batch, step, step * row, before),
            groups=(-(-hidden // _LANES), batch, 1),
            written=2,
        )
        before = step * row


def _unit_first(matrix: Floats, hidden: int) -> Floats:
    """Return the rows of four gates, unit by unit."""
    units: Floats = matrix.reshape(_GATES, hidden, -1).transpose(1, 0, 2).reshape(_GATES * hidden, -1)
    return units
