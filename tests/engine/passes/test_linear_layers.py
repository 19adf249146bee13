"""Linear layers and attention as exporters write them: what goes into their products keeps what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def operators(data):
    return [node.op_type for node in optimise(load_bytes(data)).nodes]


def linear(x, row, *, swapped=False, more=()):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["b", "p"] if swapped else ["p", "b"], ["y"]),
        *more,
    ]
    return model_bytes(nodes, {"x": x}, constants={"w": normal(x.shape[-1], 24, seed=1), "b": row})


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("row", [(24,), (1,), (1, 1, 24), ()], ids=str)
@pytest.mark.parametrize("shape", [(2, 5, 16), (1, 40, 16)], ids=str)
def test_a_row_added_to_a_sequence_is_the_bias(shape, row, swapped):
    x = normal(*shape)
    data = linear(x, normal(*row, seed=2).astype(np.float32), swapped=swapped)
    assert set(operators(data)) == {"FusedGemm", "Reshape"}
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", [(5, 24), (5, 1), (2, 1, 24), (1, 1, 1, 24)], ids=str)
def test_what_differs_between_rows_or_adds_an_axis_is_added_afterwards(row):
    x = normal(2, 5, 16)
    data = linear(x, normal(*row, seed=2))
    assert "Elementwise" in operators(data)
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)


def test_two_rows_are_one_bias():
    x = normal(2, 5, 16)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Add", ["c", "q"], ["y"]),
    ]
    constants = {"w": normal(16, 24, seed=1), "b": normal(24, seed=2), "c": normal(24, seed=3)}
    data = model_bytes(nodes, {"x": x}, constants=constants)
    assert "Elementwise" not in operators(data)
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)


def attention(heads, steps):
    """Return (q k') v, with ``steps`` on the way; ``f`` is 0.37."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[*range(len(heads) - 2), len(heads) - 1, len(heads) - 2]),
        *(helper.make_node(operator, inputs, [output]) for operator, inputs, output in steps),
        helper.make_node("Softmax", ["s"], ["w"], axis=-1),
        helper.make_node("MatMul", ["w", "v"], ["y"]),
    ]
    inputs = {name: normal(*heads, seed=number) for number, name in enumerate("qkv")}
    return model_bytes(nodes, inputs, constants={"f": np.float32(0.37)}), inputs


@pytest.mark.parametrize("heads", [(2, 3, 9, 8), (4, 19, 8)], ids=str)
@pytest.mark.parametrize(
    "steps",
    [
        [("MatMul", ["q", "t"], "p"), ("Mul", ["p", "f"], "s")],
        [("MatMul", ["q", "t"], "p"), ("Div", ["p", "f"], "s")],
        [("Mul", ["f", "q"], "a"), ("MatMul", ["a", "t"], "s")],
        [("Mul", ["q", "f"], "a"), ("Mul", ["t", "f"], "b"), ("MatMul", ["a", "b"], "s")],
        [("Mul", ["q", "f"], "a"), ("Div", ["a", "f"], "b"), ("MatMul", ["b", "t"], "p"), ("Mul", ["f", "p"], "s")],
    ],
    ids=["behind", "divided", "before", "both sides", "several"],
)
def test_factors_of_attention_go_into_its_product(heads, steps):
    data, inputs = attention(heads, steps)
    assert not {"Elementwise", "ScaleShift"} & set(operators(data))
    check_by_ort(data, inputs, rtol=1e-5, atol=1e-5)


def test_a_factor_over_the_product_is_no_factor_of_it():
    data, inputs = attention((2, 3, 9, 8), [("MatMul", ["q", "t"], "p"), ("Div", ["f", "p"], "s")])
    assert "Elementwise" in operators(data)
    check_by_ort(data, inputs, rtol=1e-3, atol=1e-4)


def test_a_product_with_itself_keeps_the_factor_of_both_sides():
    x = normal(4, 4)
    nodes = [helper.make_node("Mul", ["x", "f"], ["a"]), helper.make_node("MatMul", ["a", "a"], ["y"])]
    check_by_ort(model_bytes(nodes, {"x": x}, constants={"f": np.float32(3)}), {"x": x}, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [16, 35, 997, 4096], ids=str)
def test_what_lies_in_rows_is_shared_by_threads_and_stays_the_same(count, threads):
    """A prime number of vectors, and a last one that is not full, are no other case."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Sigmoid", ["t"], ["g"]),
        helper.make_node("Add", ["g", "t"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    x = normal(1, count, 3)
    session = Session(optimise(load_bytes(model_bytes(nodes, {"x": x}))), threads=threads)
    turned = x.astype(np.float64).transpose(0, 2, 1)
    expected = np.maximum(1 / (1 + np.exp(-turned)) + turned, 0)
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", ["Mul", "Add", "Sub", "Div"])
def test_one_number_a_channel_of_what_lies_in_planes(operator):
    x = normal(2, 6, 5, 4)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node(operator, ["t", "c"], ["a"]),
        helper.make_node("Transpose", ["a"], ["y"], perm=[0, 2, 3, 1]),
    ]
    data = model_bytes(nodes, {"x": x}, constants={"c": np.abs(normal(6, 1, 1, seed=1)) + 0.5})
    check_by_ort(data, {"x": x}, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("activation", "attributes"), [("Relu", {}), ("LeakyRelu", {"alpha": 0.2}), ("Clip", {}), ("Gelu", {})]
)
def test_a_layer_of_a_sequence_ends_in_its_activation(activation, attributes):
    """The view between the two stays, behind both."""
    x = normal(2, 5, 16)
    bounds = ["low", "high"] if activation == "Clip" else []
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node(activation, ["q", *bounds], ["y"], **attributes),
    ]
    constants = {"w": normal(16, 24, seed=1), "b": normal(24, seed=2)}
    if bounds:
        constants |= {"low": np.float32(-0.5), "high": np.float32(1)}
    data = model_bytes(nodes, {"x": x}, constants=constants, opset=20)
    assert operators(data) == ["Reshape", "FusedGemm", "Reshape"]
    check_by_ort(data, {"x": x}, rtol=1e-4, atol=1e-4)
