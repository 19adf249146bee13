"""What only constants decide is computed when a model is loaded, with the answers of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, relative_error, run_ort
from general_models import model_bytes
from onnx import helper
from operator_cases import floats, ints

from powerlab.engine import Session
from powerlab.engine import precomputed as module
from powerlab.engine.ops import convolution
from powerlab.engine.precomputed import precompute

EMBEDDING = {"e": floats(1, 4, 7, 7), "s": ints(1, 4, 12, 12)}
RESIZED = [
    helper.make_node("Resize", ["e", "", "", "s"], ["r"], mode="cubic"),
    helper.make_node("Relu", ["r"], ["t"]),
    helper.make_node("Add", ["x", "t"], ["y"]),
]
X = {"x": floats(1, 4, 12, 12)}


def operators(data):
    return [node.op_type for node in precompute(load_bytes(data)).nodes]


@pytest.fixture
def saved(tmp_path):
    def save(data):
        path = tmp_path / "model.onnx"
        path.write_bytes(data)
        return path

    return save


def test_a_resize_of_an_embedding_is_no_step_of_the_plan(saved):
    data = model_bytes(RESIZED, X, constants=EMBEDDING)
    assert "Resize" not in operators(data)
    session = Session(saved(data), threads=2)
    assert relative_error(session.run(X), run_ort(data, X)) < 1e-5
    assert not any(kernel.startswith("interpolate") for kernel, _ in session.steps())


def test_what_depends_on_an_input_stays(saved):
    nodes = [helper.make_node("Add", ["x", "e"], ["a"]), helper.make_node("MaxPool", ["a"], ["y"], kernel_shape=[2, 2])]
    data = model_bytes(nodes, {"x": floats(1, 4, 7, 7)}, constants={"e": EMBEDDING["e"]})
    assert operators(data) == ["Add", "MaxPool"]


def test_of_several_outputs_each_is_known(saved):
    nodes = [
        helper.make_node("MaxPool", ["e"], ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Sum", ["x", "p", "f"], ["y"]),
    ]
    x = {"x": floats(1, 4, 3, 3)}
    data = model_bytes(nodes, x, constants={"e": EMBEDDING["e"]})
    assert "MaxPool" not in operators(data)
    assert relative_error(Session(saved(data), threads=1).run(x), run_ort(data, x)) < 1e-5


def test_convolutions_of_constants_are_computed_by_kernels(saved, monkeypatch):
    def refuse(*_):
        raise AssertionError("numpy takes long for that")

    nodes = [
        helper.make_node("Mul", ["e", "half"], ["h"]),
        helper.make_node("Conv", ["h", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["t"]),
        helper.make_node("Conv", ["t", "v"], ["p"]),
        helper.make_node("Add", ["x", "p"], ["y"]),
    ]
    large = {"e": floats(1, 4, 40, 40), "half": floats(1), "w": floats(32, 4, 3, 3), "v": floats(4, 32, 1, 1)}
    x = {"x": floats(1, 4, 40, 40)}
    data = model_bytes(nodes, x, constants=large)
    monkeypatch.setattr(convolution, "sliding_window_view", refuse)
    session = Session(saved(data), threads=2)
    assert relative_error(session.run(x), run_ort(data, x)) < 1e-5
    assert not any(kernel.startswith("conv") for kernel, _ in session.steps())


def test_what_is_rounded_to_bytes_stays_for_layers_to_compute_with():
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Add", ["x", "p"], ["y"]),
    ]
    constants = {"q": np.ones((1, 4, 13, 13), np.int8), "scale": np.float32(0.5)}
    assert operators(model_bytes(nodes, X, constants=constants)) == ["DequantizeLinear", "MaxPool", "Add"]


@pytest.mark.parametrize("limit", ["MOST_ELEMENTS", "MOST_OPERATIONS"])
def test_what_would_take_much_is_computed_in_each_run(limit, monkeypatch):
    data = model_bytes(
        [helper.make_node("MaxPool", ["e"], ["p"], kernel_shape=[5, 5]), helper.make_node("Add", ["x", "p"], ["y"])],
        {"x": floats(1, 4, 3, 3)},
        constants={"e": EMBEDDING["e"]},
    )
    assert operators(data) == ["Add"]
    monkeypatch.setattr(module, limit, 35)
    assert operators(data) == ["MaxPool", "Add"]


def test_a_stage_that_a_run_decides_computes_its_constants_once(saved):
    nodes = [helper.make_node("NonZero", ["x"], ["places"]), *RESIZED]
    data = model_bytes(nodes, X, outputs=("y", "places"), constants=EMBEDDING)
    session = Session(saved(data), threads=1)
    assert relative_error(session.run(X), run_ort(data, X)) < 1e-5
    assert not any(kernel.startswith("interpolate") for kernel, _, _ in session.profile(X))
