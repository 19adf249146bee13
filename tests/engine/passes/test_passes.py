"""Each pass does what it says where that is legal, and nothing where it is not."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
from engine_models import check_against_ort, check_session, load_bytes, onnx_bytes
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from operator_cases import floats, ints, positive

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.ir.graph import Graph, TensorInfo, fresh_name
from powerlab.engine.passes import LOWERED, PASSES, optimise
from powerlab.engine.passes.fold.constants import fold_constants
from powerlab.engine.passes.fuse.activations import combined
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

IMAGE = (1, 4, 6, 6)
CONSTANTS = {"w": floats(4, 4, 3, 3), "w2": floats(4, 4, 1, 1), "b": floats(4), "s": positive(4), "t": floats(4)}
NORM = ["s", "t", "b", "s"]


def conv(source, output, weight="w", *bias):
    pads = [1, 1, 1, 1] if weight == "w" else [0, 0, 0, 0]
    return helper.make_node("Conv", [source, weight, *bias], [output], output, pads=pads)


def node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs, [output], output, **attributes)


def optimised(*nodes, outputs=("y",), constants=CONSTANTS):
    """Return the optimised graph, checked against ONNX Runtime."""
    used = {name for item in nodes for name in item.input}
    kept = {name: value for name, value in constants.items() if name in used}
    return check_against_ort(onnx_bytes(nodes, {"x": IMAGE}, outputs, constants=kept))


def operators(graph):
    return [item.op_type for item in graph.nodes]


def test_convolution_norm_activation_and_residual_become_one_node():
    graph = optimised(
        conv("x", "c"),
        node("BatchNormalization", ["c", *NORM], "n"),
        node("Add", ["n", "x"], "a"),
        node("Relu", ["a"], "y"),
    )
    assert operators(graph) == ["FusedConv"]
    (fused,) = graph.nodes
    assert fused.name == "c"
    assert fused.inputs[0] == fused.inputs[3] == "x"
    assert fused.attributes["clamp"] == (0, math.inf)
    assert fused.outputs == ("y",)
    assert set(graph.constants) == {fused.inputs[1], fused.inputs[2]}


@pytest.mark.parametrize("order", [["second", "first"], ["first", "second"]])
def test_of_two_convolutions_the_later_takes_the_earlier_as_residual(order):
    graph = optimised(conv("x", "first"), node("Exp", ["x"], "e"), conv("e", "second", "w2"), node("Add", order, "y"))
    convolutions = [item for item in graph.nodes if item.op_type == "FusedConv"]
    assert [(item.name, item.inputs[3]) for item in convolutions] == [("first", ""), ("second", "first")]


def test_convolutions_of_one_tensor_that_are_added_become_one():
    graph = optimised(conv("x", "first"), conv("x", "second", "w2"), node("Add", ["second", "first"], "y"))
    assert operators(graph) == ["FusedConv"]


def test_a_residual_made_after_the_convolution_is_there_before_the_fused_one():
    graph = optimised(conv("x", "c"), node("LRN", ["x"], "r", size=3), node("Add", ["c", "r"], "y"))
    assert operators(graph) == ["LRN", "FusedConv"]


ILLEGAL = {
    "the convolution is read twice": [conv("x", "c"), node("Add", ["c", "x"], "a"), node("Add", ["a", "c"], "y")],
    "it is added to itself": [conv("x", "c"), node("Add", ["c", "c"], "y")],
    "it clamps before the sum": [conv("x", "c"), node("Relu", ["c"], "r"), node("Add", ["r", "x"], "y")],
}


@pytest.mark.parametrize("reason", ILLEGAL)
def test_no_residual_is_fused_where(reason):
    graph = optimised(*ILLEGAL[reason])
    assert "Add" in operators(graph)
    assert all(not item.input(3) for item in graph.nodes if item.op_type == "FusedConv")


def test_a_convolution_takes_one_residual_only():
    graph = optimised(conv("x", "c"), node("Add", ["c", "x"], "a"), node("Add", ["a", "x"], "y"))
    assert operators(graph) == ["FusedConv", "Add"]


def test_what_is_an_output_is_not_fused_away():
    graph = optimised(
        conv("x", "c"),
        node("BatchNormalization", ["c", *NORM], "n"),
        node("Relu", ["n"], "r"),
        node("Add", ["n", "r"], "y"),
        outputs=("c", "n", "r", "y"),
    )
    assert operators(graph) == ["FusedConv", "ScaleShift", "Clamp", "Add"]


def test_a_norm_after_an_activation_stays_and_takes_the_next_activation():
    graph = optimised(
        conv("x", "c", "w", "b"),
        node("Relu", ["c"], "r"),
        node("BatchNormalization", ["r", *NORM], "n"),
        node("Relu", ["n"], "y"),
    )
    assert operators(graph) == ["FusedConv", "ScaleShift"]
    assert graph.nodes[1].attributes["clamp"] == (0, math.inf)


def test_a_chain_of_channel_arithmetic_goes_into_the_convolution():
    constants = {**CONSTANTS, "m": floats(4, 1, 1), "p": floats(1, 4, 1, 1), "two": np.float32(2)}
    graph = optimised(
        conv("x", "c"),
        node("Mul", ["m", "c"], "d"),
        node("Sub", ["p", "d"], "e"),
        node("Div", ["e", "two"], "f"),
        node("Add", ["f", "p"], "y"),
        constants=constants,
    )
    assert operators(graph) == ["FusedConv"]


def test_a_matrix_product_takes_its_bias_and_activation():
    nodes = [
        node("Flatten", ["x"], "f"),
        node("MatMul", ["f", "m"], "p"),
        node("Add", ["p", "v"], "a"),
        node("Relu", ["a"], "y"),
    ]
    graph = optimised(*nodes, constants={"m": floats(144, 5), "v": floats(5)})
    assert operators(graph) == ["Reshape", "FusedGemm"]
    assert graph.shape(graph.nodes[1].inputs[1]) == (5, 144)


def test_a_weight_two_nodes_share_is_folded_for_each():
    graph = optimised(
        conv("x", "c"),
        node("BatchNormalization", ["c", *NORM], "n"),
        conv("n", "y"),
    )
    assert operators(graph) == ["FusedConv", "FusedConv"]
    assert graph.nodes[1].inputs[1] == "w"
    assert not np.array_equal(graph.constants[graph.nodes[0].inputs[1]], graph.constants["w"])


def test_views_of_views_are_one_and_empty_views_go():
    graph = optimised(
        node("Identity", ["x"], "i"),
        node("Flatten", ["i"], "f"),
        node("Unsqueeze", ["f", "axes"], "u"),
        node("Reshape", ["u", "image"], "v"),
        node("Dropout", ["v"], "d"),
        conv("d", "c"),
        node("Identity", ["c"], "y"),
        constants={**CONSTANTS, "axes": ints(2), "image": ints(1, 4, 6, 6)},
    )
    assert operators(graph) == ["FusedConv"]
    assert graph.nodes[0].inputs[0] == "x"
    assert graph.nodes[0].outputs == ("y",)


def test_an_output_that_only_shows_another_tensor_keeps_its_name():
    graph = optimised(
        node("Relu", ["x"], "r"), node("Identity", ["r"], "y"), node("Identity", ["x"], "z"), outputs=("r", "y", "z")
    )
    assert operators(graph) == ["Clamp", "Reshape", "Reshape"]


def test_dead_nodes_and_weights_go_and_free_what_only_they_read():
    graph = optimised(conv("x", "c"), node("LRN", ["c"], "dead", size=3), node("Relu", ["c"], "y"))
    assert operators(graph) == ["FusedConv"]
    assert set(graph.tensors) == {"x", "w", "y"}


def test_inputs_stay_even_when_nothing_reads_them():
    graph = drop_dead(load_bytes(onnx_bytes([node("Relu", ["x"], "y")], {"x": (1, 2), "unused": (3,)})))
    assert [info.name for info in graph.inputs] == ["x", "unused"]
    assert "unused" in graph.tensors


@given(*[st.tuples(st.floats(-9, 9), st.floats(0, 9)).map(lambda p: (p[0], p[0] + p[1]))] * 2, st.floats(-20, 20))
def test_two_clamps_are_one(first, then, value):
    def clamp(number, bounds):
        return min(max(number, bounds[0]), bounds[1])

    assert clamp(value, combined(first, then)) == clamp(clamp(value, first), then)


def test_clips_whose_bounds_cross_give_the_upper_bound():
    low, high = np.float32(3), np.float32(1)
    graph = optimised(node("Clip", ["x", "lo", "hi"], "y"), constants={"lo": low, "hi": high})
    assert graph.nodes[0].attributes["clamp"] == (1, 1)


def test_constants_that_would_not_fit_into_memory_are_refused(monkeypatch):
    module = importlib.import_module("powerlab.engine.passes.fold.constants")  # the package's name is the function
    monkeypatch.setattr(module, "MAX_FOLDED_BYTES", 2 * 4 * 2**13)
    nodes = [node("ConstantOfShape", ["shape"], f"big{i}") for i in range(3)]
    nodes += [node("Sum", ["x", "big0", "big1", "big2"], "y")]
    data = onnx_bytes(nodes, {"x": (1,)}, constants={"shape": ints(2**13)})
    with pytest.raises(PowerlabError, match=r"ConstantOfShape node 'big2' makes .* larger than"):
        fold_constants(load_bytes(data))


def test_an_output_nothing_computes_is_passed_on():
    nodes = [node("Relu", ["x"], "y"), node("Transpose", ["w"], "z")]
    weights = floats(2, 2)
    graph = optimise(load_bytes(onnx_bytes(nodes, {"x": (1, 2)}, ["y", "x", "z"], constants={"w": weights})))
    image = np.array([[-1, 2]], np.float32)
    found = Session(graph, threads=1).run({"x": image})
    assert [found[name].tolist() for name in ("y", "x", "z")] == [[[0, 2]], image.tolist(), weights.T.tolist()]


def test_the_last_pass_leaves_only_lowered_operators():
    graph = optimised(conv("x", "c"), node("Softmax", ["c"], "y"))
    assert set(operators(graph)) <= LOWERED
    assert PASSES[-1](graph) is graph


def test_a_fresh_name_is_new():
    graph = Graph("g", (), (), (), {}, {"a": TensorInfo("a", ())})
    assert fresh_name(graph, "a") == "a_1"
    assert fresh_name(graph, "a", {"a_1"}) == "a_2"
    assert fresh_name(graph, "b") == "b"


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Resize", ["c", "", "scales"], "r", mode="linear"), node("GlobalAveragePool", ["r"], "g")],
        [node("MaxPool", ["c"], "r", kernel_shape=[2, 2], strides=[2, 2]), node("GlobalMaxPool", ["r"], "g")],
        [node("AveragePool", ["c"], "r", kernel_shape=[3, 3]), node("GlobalAveragePool", ["r"], "g")],
        [node("LRN", ["c"], "r", size=3), node("Softmax", ["r"], "g", axis=1)],
    ],
    ids=["Resize", "MaxPool", "AveragePool", "LRN"],
)
def test_what_no_rule_folds_is_computed_of_constants_too(nodes):
    """A detector's mask of ones is resized, pooled and added, without any input of the model."""
    rng = np.random.default_rng(3)
    constants = {"c": rng.standard_normal((1, 4, 8, 8)).astype(np.float32), "scales": np.float32([1, 1, 1.5, 2])}
    constants = {name: value for name, value in constants.items() if any(name in one.input for one in nodes)}
    data = onnx_bytes([*nodes, node("Add", ["x", "g"], "y")], {"x": (1, 4, 1, 1)}, constants=constants, opset=13)
    check_session(data)


def test_a_top_k_of_a_constant_whose_places_nobody_reads_is_folded():
    constants = {"c": np.arange(32, dtype=np.float32).reshape(4, 8), "k": np.array([3])}
    nodes = [helper.make_node("TopK", ["c", "k"], ["v", "i"], "n"), node("Add", ["x", "v"], "y")]
    data = onnx_bytes(nodes, {"x": (4, 3)}, constants=constants, opset=13)
    check_session(data)
    assert [one.op_type for one in optimise(load_bytes(data)).nodes] == ["Elementwise"]
