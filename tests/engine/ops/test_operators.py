"""Every operator, in each of its forms, computes what ONNX Runtime computes; wrong ones name their node."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import (
    TOLERANCE,
    check_against_ort,
    load_bytes,
    onnx_bytes,
    random_inputs,
    relative_error,
    run_ort,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from operator_cases import CASES, IMAGE, floats, ints
from window_cases import WINDOW_CASES

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.ir.statistics import operator_counts
from powerlab.engine.passes import optimise

ALL_CASES = CASES | WINDOW_CASES


@pytest.mark.parametrize("name", ALL_CASES)
def test_an_operator_computes_what_onnx_runtime_computes(name):
    operator, more, attributes, constants, opset, shape, left = ALL_CASES[name]
    node = helper.make_node(operator, ["x", *more], ["y"], "n", **attributes)
    graph = check_against_ort(onnx_bytes([node], {"x": shape}, constants=constants, opset=opset), tolerance=1e-5)
    if left is not None:
        assert [node.op_type for node in graph.nodes] == left


@pytest.mark.parametrize("name", ALL_CASES)
def test_the_session_computes_an_operator_as_onnx_runtime_does(name):
    operator, more, attributes, constants, opset, shape, _ = ALL_CASES[name]
    node = helper.make_node(operator, ["x", *more], ["y"], "n", **attributes)
    data = onnx_bytes([node], {"x": shape}, constants=constants, opset=opset)
    graph = load_bytes(data)
    inputs = random_inputs(graph)
    assert relative_error(Session(optimise(graph), threads=2).run(inputs), run_ort(data, inputs)) < TOLERANCE


def test_zeros_of_a_pad_become_padding_of_the_convolution():
    pad = helper.make_node("Pad", ["x", "p"], ["padded"])
    conv = helper.make_node("Conv", ["padded", "w"], ["y"], pads=[1, 0, 0, 0])
    constants = {"p": ints(0, 0, 1, 2, 0, 0, 3, 0), "w": floats(3, 4, 3, 3)}
    graph = check_against_ort(onnx_bytes([pad, conv], {"x": IMAGE}, constants=constants))
    assert [node.attributes["pads"] for node in graph.nodes] == [(2, 2, 3, 0)]


def test_pads_of_older_opsets_are_attributes():
    pad = helper.make_node("Pad", ["x"], ["padded"], pads=[0, 0, 1, 1, 0, 0, 1, 1])
    conv = helper.make_node("Conv", ["padded", "w"], ["y"])
    graph = check_against_ort(onnx_bytes([pad, conv], {"x": IMAGE}, constants={"w": floats(3, 4, 3, 3)}, opset=9))
    assert operator_counts(graph) == {"FusedConv": 1}


def test_shape_arithmetic_is_computed_while_loading():
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(ints(0)[0])),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "axes0"], ["batch1"]),
        helper.make_node("Slice", ["shape", "one", "three"], ["image"]),
        helper.make_node("Mul", ["image", "ones"], ["image1"]),
        helper.make_node("Constant", [], ["minus"], value_ints=[-1]),
        helper.make_node("Cast", ["minus"], ["minus64"], to=7),
        helper.make_node("Concat", ["batch1", "image1", "minus64"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    constants = {"axes0": ints(0), "one": ints(1), "three": ints(3), "ones": ints(1, 1)}
    graph = check_against_ort(onnx_bytes(nodes, {"x": IMAGE}, constants=constants))
    assert graph.shape("y") == (2, 4, 9, 7)
    assert not graph.constants


def test_weights_made_by_nodes_are_folded():
    half = numpy_helper.from_array(np.array([0.5], np.float32))
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["ones"], value=half),
        helper.make_node("Transpose", ["matrix"], ["turned"]),
        helper.make_node("Sub", ["turned", "ones"], ["weight"]),
        helper.make_node("MatMul", ["x", "weight"], ["y"]),
    ]
    constants = {"shape": ints(6, 5), "matrix": floats(5, 6)}
    graph = check_against_ort(onnx_bytes(nodes, {"x": (2, 6)}, constants=constants))
    assert operator_counts(graph) == {"FusedGemm": 1}


@pytest.mark.parametrize("by_blas", [False, True])
@pytest.mark.parametrize("group", [1, 2])
def test_a_convolution_of_constants_is_folded(group, by_blas, monkeypatch):
    if by_blas:
        monkeypatch.setattr("powerlab.engine.ops.convolution._LARGE_PRODUCTS", 0)
    settings_of = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1], "group": group}
    nodes = [
        helper.make_node("Conv", ["grid", "w", "b"], ["places"], **settings_of),
        helper.make_node("Add", ["x", "places"], ["y"]),
    ]
    constants = {"grid": floats(1, 4, 9, 8), "w": floats(6, 4 // group, 3, 2), "b": floats(6)}
    data = onnx_bytes(nodes, {"x": (1, 6, 5, 7)}, constants=constants)
    graph = optimise(load_bytes(data))
    assert "Conv" not in str(operator_counts(graph))
    inputs = random_inputs(graph)
    assert relative_error(Session(graph, threads=1).run(inputs), run_ort(data, inputs)) < TOLERANCE


@pytest.mark.parametrize(
    ("start", "end", "step"), [(0, 3, 1), (-2, 2**31, 1), (3, -100, -1), (5, 0, -2), (1, 1, 1), (100, 0, 1)]
)
def test_slices_of_constants_follow_onnx_runtime(start, end, step):
    nodes = [
        helper.make_node("Slice", ["c", "s", "e", "a", "t"], ["part"]),
        helper.make_node("Concat", ["part", "c"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["filled"]),
        helper.make_node("Add", ["x", "filled"], ["y"]),
    ]
    constants = {"c": ints(1, 1, 1, 1), "s": ints(start), "e": ints(end), "a": ints(0), "t": ints(step)}
    graph = load_bytes(onnx_bytes(nodes, {"x": (1, 1, 1, 1)}, constants=constants))
    expected = len(np.ones(4)[slice(start, None if step < 0 and end < -4 else end, step)])
    assert graph.shape("filled") == (1,) * (expected + 4)


def test_whole_numbers_are_divided_as_in_c():
    nodes = [
        helper.make_node("Div", ["a", "b"], ["quotient"]),
        helper.make_node("Reshape", ["x", "quotient"], ["y"]),
    ]
    constants = {"a": ints(-7, 7), "b": ints(7, 2)}
    graph = load_bytes(onnx_bytes(nodes, {"x": (1, 3)}, constants=constants))
    assert graph.shape("y") == (1, 3)
    with pytest.raises(PowerlabError, match=r"Div node 'quotient' cannot be computed \(division by zero\)"):
        load_bytes(onnx_bytes(nodes, {"x": (1, 3)}, constants={"a": ints(-7, 7), "b": ints(7, 0)}))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_window_gives_the_size_and_values_of_onnx_runtime(data):
    draw = data.draw
    operator = draw(st.sampled_from(["Conv", "MaxPool", "AveragePool"]))
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    attributes = {"strides": draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))}
    shape = (1, 2, draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    constants = {}
    if draw(st.booleans()):
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        # Where a stride steps over pixels, ONNX Runtime computes a negative padding for SAME and refuses it.
        attributes["strides"] = tuple(min(s, k) for s, k in zip(attributes["strides"], kernel, strict=True))
    else:
        attributes["pads"] = tuple(draw(st.integers(0, kernel[axis % 2] - 1)) for axis in range(4))
    if operator == "Conv":
        constants["w"] = np.random.default_rng(0).standard_normal((3, 2, *kernel), dtype=np.float32)
        if "auto_pad" not in attributes:
            attributes["dilations"] = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    else:
        attributes["kernel_shape"] = kernel
        attributes["ceil_mode"] = draw(st.integers(0, 1)) if "pads" in attributes else 0
        if operator == "AveragePool" and not attributes["ceil_mode"]:
            attributes["count_include_pad"] = draw(st.integers(0, 1))
    pads = attributes.get("pads", (0, 0, 0, 0))
    padded = [size + before + after for size, before, after in zip(shape[2:], pads[:2], pads[2:], strict=True)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", (1, 1)), strict=True)]
    assume(
        str(attributes.get("auto_pad")).startswith("SAME") or all(p >= r for p, r in zip(padded, reach, strict=True))
    )
    node = helper.make_node(operator, ["x", *constants], ["y"], **attributes)
    check_against_ort(onnx_bytes([node], {"x": shape}, constants=constants, opset=12), tolerance=1e-5)
