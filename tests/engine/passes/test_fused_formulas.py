"""Formulas that exporters write out: where they are a known operator they become it, else they stay what they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, check_by_ort, model_bytes, run_engine
from onnx import helper

from powerlab.engine.ir.statistics import operator_counts
from powerlab.engine.passes import optimise


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def number(value):
    return np.asarray(value, np.float32)


def gelu(form, half=0.5, root=2**0.5):
    """Return the nodes of a Gelu in the order an exporter multiplies, and their constants."""
    node = helper.make_node
    over = node("Div", ["x", "root"], ["s"]) if form != "times" else node("Mul", ["inverse", "x"], ["s"])
    start = [over, node("Erf", ["s"], ["e"]), node("Add", ["e", "one"] if form != "times" else ["one", "e"], ["a"])]
    if form == "half last":
        end = [node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["y"])]
    else:
        end = [node("Mul", ["x", "half"], ["m"]), node("Mul", ["m", "a"], ["y"])]
    constants = {"root": number(root), "inverse": number(1 / root), "one": number(1), "half": number(half)}
    return [*start, *end], constants


@pytest.mark.parametrize("form", ["half last", "half first", "times"])
def test_a_gelu_of_five_operators_is_one(form):
    nodes, constants = gelu(form)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    assert operator_counts(optimise(load_bytes(data))) == {"Gelu": 1}
    check_by_ort(data, inputs, rtol=1e-4)


@pytest.mark.parametrize(("half", "root"), [(0.51, math.sqrt(2)), (0.5, 1.5)])
def test_a_formula_like_a_gelu_is_none(half, root):
    nodes, constants = gelu("half last", half, root)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    assert "Gelu" not in operator_counts(optimise(load_bytes(data)))
    check_by_ort(data, inputs, rtol=1e-4)


def gelu_by_tanh(form="power", cubic=0.044715, root=(2 / math.pi) ** 0.5):
    """Return the nodes of a Gelu's approximation as exporters write them, and their constants."""
    node = helper.make_node
    if form == "power":
        inside = [
            node("Pow", ["x", "three"], ["p"]),
            node("Mul", ["p", "cubic"], ["c"]),
            node("Add", ["x", "c"], ["i"]),
        ]
        inside.append(node("Mul", ["i", "root"], ["t"]))
    elif form == "products":
        inside = [node("Mul", ["x", "x"], ["q"]), node("Mul", ["q", "x"], ["p"]), node("Mul", ["cubic", "p"], ["c"])]
        inside += [node("Add", ["c", "x"], ["i"]), node("Mul", ["root", "i"], ["t"])]
    else:
        inside = [node("Mul", ["x", "x"], ["q"]), node("Mul", ["cubic", "q"], ["c"]), node("Add", ["c", "one"], ["i"])]
        inside += [node("Mul", ["x", "root"], ["r"]), node("Mul", ["r", "i"], ["t"])]
    end = [node("Tanh", ["t"], ["h"]), node("Add", ["h", "one"], ["a"])]
    end += [node("Mul", ["half", "x"], ["m"]), node("Mul", ["m", "a"], ["y"])]
    constants = {
        "three": number(3),
        "cubic": number(cubic),
        "root": number(root),
        "one": number(1),
        "half": number(0.5),
    }
    used = {name for each in (*inside, *end) for name in each.input}
    return [*inside, *end], {name: value for name, value in constants.items() if name in used}


@pytest.mark.parametrize("form", ["power", "products", "factored"])
def test_a_gelu_by_tanh_is_one(form):
    nodes, constants = gelu_by_tanh(form)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    assert operator_counts(optimise(load_bytes(data))) == {"GeluTanh": 1}
    check_by_ort(data, inputs, rtol=1e-4)


@pytest.mark.parametrize("form", ["power", "products", "factored"])
@pytest.mark.parametrize("numbers", [{"cubic": 0.0447}, {"root": 0.8}])
def test_a_formula_like_a_gelu_by_tanh_is_none(form, numbers):
    nodes, constants = gelu_by_tanh(form, **numbers)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    counts = operator_counts(optimise(load_bytes(data)))
    assert not {"Gelu", "GeluTanh"} & set(counts)
    check_by_ort(data, inputs, rtol=1e-4)


@pytest.mark.parametrize("exponent", [2, 3, 2.0, -1.0, 0.5, 2.5])
def test_powers_keep_their_value_and_their_shape(exponent):
    inputs = {"x": normal(3, 40)}
    if exponent not in (2, 3):
        inputs["x"] = np.abs(inputs["x"]) + 0.1
    constants = {"e": np.asarray(exponent, np.int64 if isinstance(exponent, int) else np.float32)}
    data = model_bytes([helper.make_node("Pow", ["x", "e"], ["y"])], inputs, constants=constants)
    check_by_ort(data, inputs, rtol=1e-5)


def layer_norm(form="pow", axes=(-1,), others=(-1,), exponent=2.0):
    node = helper.make_node
    square = node("Pow", ["d", "two"], ["q"]) if form == "pow" else node("Mul", ["d", "d"], ["q"])
    return [
        node("ReduceMean", ["x"], ["m"], axes=list(axes)),
        node("Sub", ["x", "m"], ["d"]),
        square,
        node("ReduceMean", ["q"], ["v"], axes=list(others)),
        node("Add", ["v", "epsilon"], ["w"]),
        node("Sqrt", ["w"], ["r"]),
        node("Div", ["d", "r"], ["n"]),
        node("Mul", ["n", "scale"], ["s"]),
        node("Add", ["s", "shift"], ["y"]),
    ], {
        "two": number(exponent),
        "epsilon": number(1e-5),
        "scale": normal(20, seed=1),
        "shift": normal(20, seed=2),
    }


@pytest.mark.parametrize("form", ["pow", "product"])
def test_a_layer_normalisation_of_nine_operators_is_one(form):
    nodes, constants = layer_norm(form)
    inputs = {"x": 3 * normal(2, 7, 20) + 1}
    data = model_bytes(nodes, inputs, constants=constants, opset=13)
    graph = optimise(load_bytes(data))
    assert operator_counts(graph) == {"RowNorm": 1}
    assert len(graph.nodes[0].inputs) == 3
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"axes": (1,), "others": (-1,)}, {"axes": (1,), "others": (1,)}, {"exponent": 4.0}], ids=str
)
def test_a_formula_like_a_layer_normalisation_is_none(options):
    nodes, constants = layer_norm(**options)
    inputs = {"x": normal(2, 7, 20)}
    data = model_bytes(nodes, inputs, constants=constants, opset=13)
    assert "RowNorm" not in operator_counts(optimise(load_bytes(data)))
    wide, exponent = inputs["x"].astype(np.float64), options.get("exponent", 2.0)
    deviation = wide - wide.mean(options.get("axes", (-1,)), keepdims=True)
    moment = (deviation**exponent).mean(options.get("others", (-1,)), keepdims=True)
    expected = deviation / np.sqrt(moment + 1e-5) * constants["scale"] + constants["shift"]
    alike(run_engine(data, inputs), {"y": expected.astype(np.float32)}, rtol=1e-4, atol=1e-5)


def test_a_scale_that_is_no_row_stays_a_product():
    nodes, constants = layer_norm()
    constants["scale"] = normal(7, 1, seed=1)
    inputs = {"x": normal(2, 7, 20)}
    data = model_bytes(nodes, inputs, constants=constants, opset=13)
    # Scale and shift are one step.
    assert operator_counts(optimise(load_bytes(data))) == {"RowNorm": 1, "Elementwise": 1}
    check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)
