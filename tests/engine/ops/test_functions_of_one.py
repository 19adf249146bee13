"""Functions of one number: near what double precision says, in all layouts, and folded to the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, check_by_ort, model_bytes, node_bytes, run_engine
from onnx import helper

from powerlab.engine.ops.functions import FUNCTIONS
from powerlab.engine.passes.fold.constants import fold_constants

BETWEEN = {
    **dict.fromkeys(("Acos", "Asin", "Atanh"), (-0.999, 0.999)),
    **dict.fromkeys(("Log", "Reciprocal", "Sqrt"), (0.01, 100.0)),
    "Acosh": (1.0, 100.0),
    **dict.fromkeys(("Cosh", "Exp", "Sinh"), (-20.0, 20.0)),
    "Tan": (-1.5, 1.5),
}
OPSETS = {"Swish": 24, "Mish": 18}
GIVEN = {
    "Celu": {"alpha": 2.0},
    "Elu": {"alpha": 0.5},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "Selu": {"alpha": 2.0, "gamma": 3.0},
    "Shrink": {"lambd": 1.5, "bias": 1.5},
    "Swish": {"alpha": 1.5},
    "ThresholdedRelu": {"alpha": 2.0},
}


def erf(x):
    return np.vectorize(math.erf)(x)


def doubles(operator, x, numbers):
    """Return a function in double precision."""
    x = x.astype(np.float64)
    if operator == "Erf":
        return erf(x)
    given = [numbers.get(name, usual) for name, usual in FUNCTIONS[operator].numbers.values()]
    return np.asarray(FUNCTIONS[operator].evaluate(x, *given))


@pytest.mark.parametrize("given", [False, True], ids=["usual", "given"])
@pytest.mark.parametrize("operator", sorted(FUNCTIONS))
def test_values_are_near_those_in_double_precision(operator, given):
    numbers = GIVEN.get(operator, {}) if given else {}
    low, high = BETWEEN.get(operator, (-10.0, 10.0))
    x = np.random.default_rng(1).uniform(low, high, (2, 3, 7, 5)).astype(np.float32)
    x.reshape(-1)[:4] = [low, high, (low + high) / 2, low / 3 + high / 1.5]
    data = node_bytes(operator, {"x": x}, opset=OPSETS.get(operator, 18), **numbers)
    alike(run_engine(data, {"x": x}), {"y": doubles(operator, x, numbers).astype(np.float32)}, rtol=3e-6, atol=2e-6)


@pytest.mark.parametrize("operator", ["Celu", "Elu", "Selu"])
def test_numbers_little_below_zero_keep_their_digits(operator):
    """There exp(x) - 1 has none left."""
    x = -np.geomspace(1e-12, 1, 100, dtype=np.float32)
    found = run_engine(node_bytes(operator, {"x": x}), {"x": x})["y"]
    np.testing.assert_allclose(found, doubles(operator, x, {}), rtol=1e-6)


@pytest.mark.parametrize("operator", sorted(FUNCTIONS.keys() - {"Swish"}))
def test_onnx_runtime_says_the_same(operator):
    low, high = BETWEEN.get(operator, (-10.0, 10.0))
    x = np.random.default_rng(2).uniform(low, high, (33,)).astype(np.float32)
    if operator == "Mish":
        return  # ONNX Runtime has it in its own domain alone
    check_by_ort(node_bytes(operator, {"x": x}), {"x": x}, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_in_both_forms(approximate):
    x = np.random.default_rng(3).uniform(-6, 6, (4, 50)).astype(np.float32)
    check_by_ort(node_bytes("Gelu", {"x": x}, opset=20, approximate=approximate), {"x": x})


@pytest.mark.parametrize("operator", ["Abs", "Neg", "Sign"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_whole_numbers_stay_whole(operator, dtype):
    x = np.array([-128, -3, 0, 1, 127], dtype)
    function = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign}[operator]
    alike(run_engine(node_bytes(operator, {"x": x}), {"x": x}), {"y": function(x)})


@pytest.mark.parametrize("operator", sorted(FUNCTIONS))
def test_a_constant_folds_to_what_a_run_gives(operator):
    low, high = BETWEEN.get(operator, (-3.0, 3.0))
    x = np.random.default_rng(4).uniform(low, high, (5, 3)).astype(np.float32)
    opset = OPSETS.get(operator, 18)
    graph = fold_constants(load_bytes(node_bytes(operator, {}, constants={"x": x}, opset=opset)))
    found = run_engine(node_bytes(operator, {"x": x}, opset=opset), {"x": x})["y"]
    np.testing.assert_allclose(graph.constants["y"], found, rtol=1e-5, atol=1e-6)


def test_not_a_number_and_zeros_pass_through():
    x = np.float32([np.nan, 0.0, -0.0, np.inf, -np.inf])
    for operator in ("Abs", "Ceil", "Floor", "Neg", "Round", "Sign", "Sqrt", "Softplus", "Tanh"):
        with np.errstate(invalid="ignore"):
            expected = np.float32(FUNCTIONS[operator].evaluate(x))
        found = run_engine(node_bytes(operator, {"x": x}), {"x": x})["y"]
        np.testing.assert_array_equal(found, expected, err_msg=operator)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "uint8"])
def test_clips_with_bounds_of_a_run(dtype):
    inputs = {"x": np.arange(12).reshape(3, 4).astype(dtype), "l": np.array(2, dtype), "h": np.array(7, dtype)}
    alike(run_engine(node_bytes("Clip", inputs), inputs), {"y": np.clip(inputs["x"], 2, 7)})
    open_below = {name: inputs[name] for name in ("x", "h")}
    data = node_bytes("Clip", open_below, order=["x", "", "h"])
    alike(run_engine(data, open_below), {"y": np.minimum(inputs["x"], inputs["h"])})


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
def test_relu_of_whole_numbers(dtype):
    x = np.array([-3, 0, 5], dtype)
    alike(run_engine(node_bytes("Relu", {"x": x}), {"x": x}), {"y": np.maximum(x, 0)})


def test_a_function_between_convolutions_stays_in_blocks():
    """Its input lies in blocks: no reorder is worth anything there."""
    from powerlab.engine import Session
    from powerlab.engine.passes import optimise

    x = np.random.default_rng(5).standard_normal((1, 16, 6, 6), np.float32)
    w = np.random.default_rng(6).standard_normal((16, 16, 1, 1), np.float32) / 4
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Softplus", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["y"]),
    ]
    data = model_bytes(nodes, {"x": x}, constants={"w": w})
    check_by_ort(data, {"x": x}, rtol=1e-4, atol=1e-5)
    kernels = [kernel for kernel, _ in Session(optimise(load_bytes(data)), threads=1).steps()]
    assert sum("reorder" in kernel for kernel in kernels) <= 2
