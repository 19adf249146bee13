"""The cells of a GRU and an LSTM that train, one step of time, forwards and backwards."""

from __future__ import annotations

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_gru_cell(builder: Builder, node: Node) -> None:
    """Lower a GruCell."""
    _emit(builder, node, "gru_cell_f32", (0, 2))


def lower_gru_cell_gradient(builder: Builder, node: Node) -> None:
    """Lower a GruCellGradient."""
    _emit(builder, node, "gru_cell_gradient_f32", (0, 2, 1))


def lower_lstm_cell(builder: Builder, node: Node) -> None:
    """Lower an LstmCell."""
    _emit(builder, node, "lstm_cell_f32", (0, 2, 2))


def lower_lstm_cell_gradient(builder: Builder, node: Node) -> None:
    """Lower an LstmCellGradient."""
    _emit(builder, node, "lstm_cell_gradient_f32", (0, 1))


def _emit(builder: Builder, node: Node, family: str, like: tuple[int, ...]) -> None:
    """Emit a step, whose results are as large as inputs ``like``; of some nobody needs to know."""
    read = [builder.general(name) for name in node.inputs]
    made = [
        builder.new_general(name) if name else builder.room(builder.graph.shape(node.inputs[index]))
        for name, index in zip(node.outputs, like, strict=True)
    ]
    builder.emit_general(family, node, (*made, *read))
