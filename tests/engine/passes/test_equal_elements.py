"""What is picked from a constant of equal elements, and from one of others."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, run_ort
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise

DATA = {"zeros": np.zeros((2, 6), np.float32), "one other": np.eye(2, 6, dtype=np.float32), "few": np.full((2, 3), 7.0)}


@pytest.mark.parametrize("name", DATA)
def test_elements_are_picked_only_where_it_matters_which(name):
    data, x = DATA[name].astype(np.float32), np.array([[2, 0, -1, 1], [1, 1, 2, -3]], np.float32)
    nodes = [
        helper.make_node("Cast", ["x"], ["places"], to=7),
        helper.make_node("GatherElements", ["data", "places"], ["picked"], axis=1),
        helper.make_node("Add", ["picked", "x"], ["y"]),
    ]
    made = onnx_bytes(nodes, {"x": x.shape}, constants={"data": data})
    graph = optimise(load_bytes(made))
    assert any(node.op_type == "GatherElements" for node in graph.nodes) == (name == "one other")
    np.testing.assert_array_equal(Session(graph, 1).run({"x": x})["y"], run_ort(made, {"x": x})["y"])
