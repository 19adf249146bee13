"""Backpropagation through time, against central differences in float64."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from engine_reference import recurrence
from gradient_checks import check_gradients

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.training import Adam, TrainingSession, session
from powerlab.engine.training.step import training_step

STEPS, BATCH, INPUTS, HIDDEN = 3, 2, 3, 2
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FUNCTIONS = {"GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh"), "RNN": ("tanh",)}


@pytest.mark.parametrize(
    ("cell", "direction", "attributes"),
    [
        ("LSTM", "forward", {}),
        ("LSTM", "bidirectional", {}),
        ("GRU", "reverse", {"linear_before_reset": 0}),
        ("GRU", "bidirectional", {"linear_before_reset": 1}),
        ("RNN", "forward", {}),
    ],
)
def test_gradients_go_back_through_time(cell, direction, attributes):
    directions, rows = 1 + (direction == "bidirectional"), GATES[cell] * HIDDEN
    random, state = np.random.default_rng(4), (directions, BATCH, HIDDEN)
    shapes = {
        "x": (STEPS, BATCH, INPUTS),
        "w": (directions, rows, INPUTS),
        "r": (directions, rows, HIDDEN),
        "b": (directions, 2 * rows),
        "h": state,
        **({"c": state} if cell == "LSTM" else {}),
    }
    form = {
        "cell": cell,
        "direction": direction,
        "lengths": (),
        "clip": math.inf,
        "couples": False,
        "resets_before": not attributes.get("linear_before_reset", 0),
        "functions": [[SimpleNamespace(name=name, alpha=0, beta=0) for name in FUNCTIONS[cell]]] * directions,
    }
    check_gradients(
        cell,
        {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()},
        order=["x", "w", "r", "b", "", *list(shapes)[4:]],
        judge=lambda x, w, r, b, *states: recurrence(form, x, w, r, b, None, *states)[0],
        direction=direction,
        hidden_size=HIDDEN,
        **attributes,
    )


def of_last_step(outputs: tuple[str, ...], *after: Node, layout: int = 0) -> Graph:
    """Return an LSTM from zeros without biases, and a linear layer of what the last step made."""
    random = np.random.default_rng(4)
    constants = {
        "w": random.standard_normal((1, 4 * HIDDEN, INPUTS)).astype(np.float32),
        "r": random.standard_normal((1, 4 * HIDDEN, HIDDEN)).astype(np.float32),
        "last": np.array([STEPS - 1]),
        "flat": np.array([BATCH, HIDDEN]),
        "v": random.standard_normal((HIDDEN, 4)).astype(np.float32),
    }
    x = (BATCH, STEPS, INPUTS) if layout else (STEPS, BATCH, INPUTS)
    nodes = [
        Node("LSTM", "lstm", ("x", "w", "r"), outputs, {"hidden_size": HIDDEN, "layout": layout}),
        *after,
        Node("Reshape", "flatten", ("end", "flat"), ("e",)),
        Node("MatMul", "linear", ("e", "v"), ("y",)),
    ]
    return infer("lstm", nodes, [TensorInfo("x", x)], ["y"], constants)


def test_the_last_state_has_the_gradients_of_the_last_step():
    gather = Node("Gather", "pick", ("all", "last"), ("end",), {"axis": 0})
    x, labels = np.random.default_rng(1).standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32), np.array([3, 0])
    found = []
    for graph, given in (
        (of_last_step(("all",), gather), x),
        (of_last_step(("", "end")), x),
        (of_last_step(("", "end"), layout=1), x.transpose(1, 0, 2)),
    ):
        session = TrainingSession(graph, threads=1)
        found.append((session.step(given, labels), session.gradients()))
    for loss, gradients in found[1:]:
        assert loss == pytest.approx(found[0][0], rel=1e-6)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(gradient, found[0][1][name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_zoos_lstm_learns():
    graph = load_graph("lstm2", {"x": (2, 4, 256)})
    session = TrainingSession(graph, "mse", Adam(rate=0.002), threads=1)
    x = np.random.default_rng(1).standard_normal((2, 4, 256)).astype(np.float32)
    losses = [session.step(x, 0.5 * np.tanh(x[:, ::-1])) for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_other_recurrences_are_refused():
    graph = of_last_step(("", "end"))
    lstm = graph.nodes[0]
    clipped = Node(lstm.op_type, lstm.name, lstm.inputs, lstm.outputs, {**lstm.attributes, "clip": 1.0})
    with pytest.raises(PowerlabError, match=r"LSTM node 'lstm' cannot be trained: .* without clip"):
        TrainingSession(graph.rewritten([clipped, *graph.nodes[1:]]), threads=1)


def composed_step(*arguments, whole_cells, **more):
    assert whole_cells
    return training_step(*arguments, **more)


def of_recurrence(operator: str) -> Graph:
    """Return a recurrence of some steps from a state that it is given, and whose last state it gives, too."""
    random, rows = np.random.default_rng(4), GATES[operator] * HIDDEN
    shapes = {"w": (1, rows, INPUTS), "r": (1, rows, HIDDEN), "b": (1, 2 * rows)}
    constants = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    attributes = {"hidden_size": HIDDEN, "linear_before_reset": 1} if operator == "GRU" else {"hidden_size": HIDDEN}
    nodes = [
        Node(operator, "cells", ("x", "w", "r", "b"), ("every", "last"), attributes),
        Node("Add", "join", ("every", "last"), ("y",)),
    ]
    return infer(operator, nodes, [TensorInfo("x", (STEPS, BATCH, INPUTS))], ["y"], constants)


@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
def test_whole_cells_have_the_gradients_of_what_they_are_composed_of(operator, monkeypatch):
    graph, random = of_recurrence(operator), np.random.default_rng(9)
    x = random.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)
    target = random.standard_normal((STEPS, 1, BATCH, HIDDEN)).astype(np.float32)
    whole = TrainingSession(graph, "mse", threads=1)
    monkeypatch.setattr(session, "training_step", composed_step)
    composed = TrainingSession(graph, "mse", threads=1)
    losses = [one.step(x, target) for one in (whole, composed)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for name, gradient in composed.gradients().items():
        scale = np.abs(gradient).max()
        np.testing.assert_allclose(whole.gradients()[name], gradient, rtol=0, atol=1e-5 * scale, err_msg=name)


@pytest.mark.parametrize(("operator", "cell"), [("GRU", "GruCell"), ("LSTM", "LstmCell")])
def test_a_step_of_a_cell_is_one_operator_each_way(operator, cell):
    step = training_step(of_recurrence(operator), "mse", Adam(), whole_cells=True)
    operators = [node.op_type for node in step.graph.nodes]
    assert operators.count(cell) == operators.count(f"{cell}Gradient") == STEPS
    assert not {"Sigmoid", "Tanh"} & set(operators)
