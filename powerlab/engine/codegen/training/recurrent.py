"""The cell of an LSTM that trains, one step of time, forwards and backwards."""

from __future__ import annotations

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_lstm_cell(builder: Builder, node: Node) -> None:
    """Lower an LstmCell."""
    _emit(builder, node, "lstm_cell_f32", node.inputs[2])


def lower_lstm_cell_gradient(builder: Builder, node: Node) -> None:
    """Lower an LstmCellGradient."""
    _emit(builder, node, "lstm_cell_gradient_f32", node.inputs[1])


def _emit(builder: Builder, node: Node, family: str, cells: str) -> None:
    """Emit a step; results after the first are as large as the cells, and of some nobody needs to know."""
    read = [builder.general(name) for name in node.inputs]
    room = builder.graph.shape(cells)
    made = [builder.new_general(name) if name else builder.room(room) for name in node.outputs]
    builder.emit_general(family, node, (*made, *read))
