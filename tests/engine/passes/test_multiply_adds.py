"""A sum of a product is one step, unless another node reads the product, the sum is larger, or a layer adds it."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise

ONE = "mul_add_strided_f32"


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def kernels(data):
    return [node.attributes.get("kernel", node.op_type) for node in optimise(load_bytes(data)).nodes]


def scaled(x, scale, shift, *more, swapped=False, outputs=("y",)):
    nodes = [
        helper.make_node("Mul", ["a", "x"] if swapped else ["x", "a"], ["p"]),
        helper.make_node("Add", ["b", "p"] if swapped else ["p", "b"], ["y"]),
        *more,
    ]
    return model_bytes(nodes, {"x": x}, outputs=list(outputs), constants={"a": scale, "b": shift})


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("shift", [(24,), (5, 1), (2, 5, 24), (1,)], ids=str)
@pytest.mark.parametrize("scale", [(24,), (5, 1), (2, 5, 24), (1,)], ids=str)
def test_a_scaled_and_shifted_sequence_is_one_step(scale, shift, swapped):
    x = normal(2, 5, 24)
    data = scaled(x, normal(*scale, seed=1), normal(*shift, seed=2), swapped=swapped)
    assert kernels(data) == [ONE]
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)


def test_a_scaled_tensor_may_be_added_to_another_one():
    """As rotated positions are: x times a cosine, and x turned times a sine."""
    x, turned = normal(2, 3, 7, 16), normal(2, 3, 7, 16, seed=1)
    nodes = [
        helper.make_node("Mul", ["x", "cos"], ["p"]),
        helper.make_node("Mul", ["t", "sin"], ["q"]),
        helper.make_node("Add", ["p", "q"], ["y"]),
    ]
    constants = {"cos": normal(7, 16, seed=2), "sin": normal(7, 16, seed=3)}
    data = model_bytes(nodes, {"x": x, "t": turned}, constants=constants)
    assert sorted(kernels(data)) == [ONE, "mul_strided_f32"]
    check_by_ort(data, {"x": x, "t": turned}, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("scale", "shift", "outputs"),
    [((24,), (24,), ("y", "p")), ((24,), (3, 2, 5, 24), ("y",))],
    ids=["read elsewhere", "smaller than the sum"],
)
def test_a_product_stays_by_itself(scale, shift, outputs):
    x = normal(2, 5, 24)
    data = scaled(x, normal(*scale, seed=1), normal(*shift, seed=2), outputs=outputs)
    assert kernels(data) == ["mul_strided_f32", "add_strided_f32"]
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_a_linear_layer_adds_a_scaled_residual(first):
    """Where that is there before the layer is computed, the layer reads it; else it is scaled where it is added."""
    x = normal(1, 40, 32)
    layer, scale = helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["x", "a"], ["p"])
    order = [scale, layer] if first else [layer, scale]
    nodes = [*order, helper.make_node("Add", ["m", "p"], ["y"])]
    data = model_bytes(nodes, {"x": x}, constants={"w": normal(32, 32, seed=1), "a": normal(32, seed=2)})
    assert (ONE in kernels(data)) == (not first)
    steps = [kernel for kernel, _ in Session(optimise(load_bytes(data)), threads=1).steps()]
    assert not [kernel for kernel in steps if kernel.startswith("add")]
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-5)
