"""Operators over rows: normalisations, softmax and its relatives, along any axes, against ONNX Runtime or numpy."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, check_by_ort, model_bytes, node_bytes, run_engine
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


SHAPES = [(7,), (3, 40), (2, 3, 5), (2, 3, 4, 17), (1, 2, 3, 2, 5), (4, 1, 1), (1, 4)]


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_and_its_relatives_along_every_axis(operator, opset, shape):
    x = 5 * normal(*shape)
    for axis in range(-len(shape), len(shape)):
        check_by_ort(node_bytes(operator, {"x": x}, opset=opset, axis=axis), {"x": x}, atol=1e-5)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_large_numbers_overflow_nowhere(operator):
    x = np.float32([[1000, 1001, -1000] * 9, [-1e30, 0, 1e30] * 9])
    check_by_ort(node_bytes(operator, {"x": x}), {"x": x})


@pytest.mark.parametrize("shape", [(3, 40), (2, 3, 5), (2, 3, 4, 17), (2, 2, 3, 2, 5)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_layer_normalisation_of_every_axis(shape, bias, known):
    x = 3 * normal(*shape) + 1
    for axis in range(-len(shape), len(shape)):
        rows = shape[axis:]
        vectors = {"scale": normal(*rows, seed=1), **({"bias": normal(*rows, seed=2)} if bias else {})}
        inputs = {"x": x} if known else {"x": x, **vectors}
        data = node_bytes(
            "LayerNormalization",
            inputs,
            constants=vectors if known else {},
            order=["x", *vectors],
            axis=axis,
            epsilon=1e-3,
        )
        check_by_ort(data, inputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 3), (16, 16)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_scale_and_bias_may_be_made_while_the_network_runs(shape, axis):
    """Images of what a step makes may lie apart, each filled up to whole vectors."""
    inputs = {name: normal(*(shape if name == "x" else shape[axis:]), seed=seed) for seed, name in enumerate("xsb")}
    nodes = [
        helper.make_node("Relu", ["s"], ["scale"]),
        helper.make_node("Relu", ["b"], ["bias"]),
        helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=axis),
    ]
    check_by_ort(model_bytes(nodes, inputs), inputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [(1,), (4, 5), (3, 1, 1), (2, 3, 4, 5), (4, 1), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("operator", ["LayerNormalization", "RMSNormalization"])
def test_a_scale_of_another_shape_than_the_row(scale, operator):
    x, factor = normal(2, 3, 4, 5), normal(*scale, seed=1)
    data = node_bytes(operator, {"x": x, "s": factor}, opset=23, axis=2)
    wide = x.astype(np.float64)
    middle = wide.mean(axis=(2, 3), keepdims=True) if operator == "LayerNormalization" else 0.0
    square = ((wide - middle) ** 2).mean(axis=(2, 3), keepdims=True)
    expected = ((wide - middle) / np.sqrt(square + 1e-5) * factor).astype(np.float32)
    alike(run_engine(data, {"x": x, "s": factor}), {"y": expected}, rtol=1e-4, atol=1e-5)


def test_a_scale_that_does_not_fit_is_refused_with_its_node():
    with pytest.raises(PowerlabError, match="LayerNormalization node 'n' scales or shifts the shape"):
        load_bytes(node_bytes("LayerNormalization", {"x": normal(2, 3), "s": normal(2, 2, 3)}))


def test_a_row_of_one_number_is_normalised_to_zero():
    x = normal(4, 1)
    data = node_bytes("LayerNormalization", {"x": x, "s": np.ones(1, np.float32)})
    np.testing.assert_array_equal(run_engine(data, {"x": x, "s": np.ones(1, np.float32)})["y"], np.zeros((4, 1)))


def test_hardmax_chooses_what_is_no_number_also_when_it_is_folded():
    x = np.float32([[1, np.nan, 3], [np.nan, 2, np.nan], [1, 2, np.nan], [1, 3, 3]])
    folded = run_engine(node_bytes("Hardmax", {}, constants={"x": x}), {})["y"]
    found = run_engine(node_bytes("Hardmax", {"x": x}), {"x": x})["y"]
    assert folded.tolist() == found.tolist() == np.eye(3)[[1, 0, 2, 1]].tolist()


NORMALISED = {
    "floored": ["ReduceL2 x,last -> n", "Clip n,small -> c", "Div x,c -> y"],
    "repeated": ["ReduceL2 x,last -> n", "Clip n,small -> c", "Expand c,whole -> e", "Div x,e -> y"],
    "bare": ["ReduceL2 x,last -> n", "Div x,n -> y"],
    "of two axes": ["ReduceL2 x,two -> n", "Max n,small -> c", "Div x,c -> y"],
}
"""How exporters divide by a norm."""


def steps(lines):
    """Return the nodes of lines such as ``Div x,c -> y``."""
    made = []
    for line in lines:
        operator, read, _, output = line.split()
        made.append(helper.make_node(operator, read.split(","), [output]))
    return made


def kernels(data):
    return [kernel for kernel, _ in Session(optimise(load_bytes(data)), threads=1).steps()]


@pytest.mark.parametrize("form", NORMALISED)
@pytest.mark.parametrize("shape", [(5, 7, 10), (3, 2, 64), (2, 2, 67)], ids=str)
def test_a_division_by_the_norm_is_one_step(form, shape):
    x = normal(*shape)
    x[0, 0] = 0 if form != "bare" else 1
    constants = {
        "small": np.float32(1e-12),
        "last": np.array([-1]),
        "two": np.array([-2, -1]),
        "whole": np.array(shape),
    }
    data = model_bytes(steps(NORMALISED[form]), {"x": x}, constants=constants)
    check_by_ort(data, {"x": x}, rtol=1e-5, atol=1e-6)
    assert any(kernel.startswith("l2_norm_f32") for kernel in kernels(data))


@pytest.mark.parametrize("size", [1e-25, 1e25], ids=str)
def test_squares_of_a_norm_neither_vanish_nor_overflow(size):
    x = normal(3, 20) * np.float32(size)
    constants = {"small": np.float32(1e-38), "last": np.array([-1])}
    data = model_bytes(steps(NORMALISED["floored"]), {"x": x}, constants=constants)
    wide = x.astype(np.float64)
    expected = (wide / np.sqrt((wide**2).sum(-1, keepdims=True))).astype(np.float32)
    alike(run_engine(data, {"x": x}), {"y": expected}, rtol=1e-5, atol=1e-7)


def test_a_norm_of_what_is_no_number_is_none():
    x = normal(2, 9)
    x[1, 3] = np.nan
    constants = {"small": np.float32(1e-12), "last": np.array([-1])}
    found = run_engine(model_bytes(steps(NORMALISED["floored"]), {"x": x}, constants=constants), {"x": x})["y"]
    assert np.isnan(found).tolist() == [[False] * 9, [True] * 9]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 1])
def test_lp_normalisation_leaves_zeros(p, axis):
    x = normal(3, 4, 12)
    x[1] = 0
    expected = x / np.maximum(np.linalg.norm(x, p, axis=axis, keepdims=True), 1e-30)
    data = node_bytes("LpNormalization", {"x": x}, axis=axis, p=p)
    alike(run_engine(data, {"x": x}), {"y": expected.astype(np.float32)}, rtol=1e-5, atol=1e-6)
    assert any(kernel.startswith("l2_norm_f32") for kernel in kernels(data)) == (p == 2 and axis == -1)


@pytest.mark.parametrize(
    "lines",
    [
        ["ReduceL2 x,last -> n", "Div x,n -> d", "Add d,n -> y"],
        ["ReduceL2 x,first -> n", "Div x,n -> y"],
        ["ReduceL2 z,last -> n", "Div x,n -> y"],
        ["ReduceL2 x,last -> n", "Clip n,small,large -> c", "Div x,c -> y"],
    ],
    ids=["the norm is read", "another axis", "another tensor", "bounded above"],
)
def test_other_divisions_stay(lines):
    inputs = {"x": normal(3, 4, 12), "z": normal(3, 4, 12, seed=1)}
    if not any("z" in line for line in lines):
        del inputs["z"]
    constants = {
        "small": np.float32(1e-12),
        "large": np.float32(2),
        "last": np.array([-1]),
        "first": np.array([0]),
    }
    data = model_bytes(steps(lines), inputs, constants=constants)
    check_by_ort(data, inputs, rtol=1e-5, atol=1e-6)
    assert not any(kernel.startswith("l2_norm_f32") for kernel in kernels(data))
