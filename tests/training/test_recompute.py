"""Activations that are computed again: the same bits in less memory."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.backends.training.batch import LABELS, batch, target_of
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.training import TrainingSession


def with_dropout(graph: Graph) -> Graph:
    """Return a network that drops before its last layer."""
    *nodes, last = graph.nodes
    kept = Node("Dropout", "drop", last.inputs[:1], ("dropped",), {"ratio": 0.5})
    info = graph.tensors[last.inputs[0]]
    tensors = [TensorInfo("dropped", info.shape, info.dtype)]
    after = Node(last.op_type, last.name, ("dropped", *last.inputs[1:]), last.outputs, last.attributes)
    return graph.rewritten((*nodes, kept, after), tensors=tensors)


@pytest.mark.parametrize("model", ["mobilenetv2@64", "resnet18@64"])
def test_steps_give_the_same_bits_in_less_memory(model):
    graph = load_graph(model, batch_size=4)
    if model.startswith("resnet"):
        graph = with_dropout(graph)
    given = batch(graph, 0)
    inputs, labels = {name: value for name, value in given.items() if name != LABELS}, given[LABELS]
    found = []
    for recompute in (False, True):
        session = TrainingSession(graph, target_of(graph).loss, "momentum", threads=2, recompute=recompute)
        losses = [session.step(inputs, labels) for _ in range(2)]
        found.append((session, losses, session.weights()))
    (kept, losses, weights), (again, same_losses, same_weights) = found
    assert same_losses == losses
    assert all(np.array_equal(weights[name], value) for name, value in same_weights.items())
    assert again.planned_bytes < kept.planned_bytes
