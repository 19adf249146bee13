"""Layers that run as one: functions that end convolutions, groups in parts, channels that move without a detour."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, relative_error, run_ort
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.passes import optimise
from powerlab.engine.passes.fuse.functions import FUSED
from powerlab.engine.target.tiers import choose_tier

RANDOM = np.random.default_rng(7)
# Winograd rounds more than the dot products that it replaces, most of all on the narrower tiers.
TOLERANCE = 1e-5


def normal(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]) or 1).astype(np.float32)


def conv(x, weight, out, **attributes):
    return helper.make_node("Conv", [x, weight], [out], out, **attributes)


# What a function ends: the nodes, up to "c", the shape of x, the constants, and the operator that the graph then has.
LAYERS = {
    "point": ([conv("x", "w", "c")], (2, 24, 9, 9), {"w": normal(40, 24, 1, 1)}, "FusedConv"),
    "winograd": ([conv("x", "w", "c", pads=[1] * 4)], (1, 64, 28, 28), {"w": normal(64, 64, 3, 3)}, "FusedConv"),
    "strided": ([conv("x", "w", "c", strides=[2, 2])], (1, 3, 33, 33), {"w": normal(20, 3, 3, 3)}, "FusedConv"),
    "depthwise": (
        [conv("x", "w", "c", pads=[1] * 4, group=24)],
        (2, 24, 9, 9),
        {"w": normal(24, 1, 3, 3)},
        "FusedConv",
    ),
    "chain": (
        [conv("x", "w", "d"), conv("d", "v", "c", pads=[1] * 4, group=40)],
        (1, 24, 9, 9),
        {"w": normal(40, 24, 1, 1), "v": normal(40, 1, 3, 3)},
        "Chain",
    ),
    "few rows": ([helper.make_node("MatMul", ["x", "w"], ["c"], "c")], (3, 50), {"w": normal(50, 21)}, "FusedGemm"),
    "many rows": (
        [helper.make_node("MatMul", ["x", "w"], ["c"], "c")],
        (2, 30, 50),
        {"w": normal(50, 21)},
        "FusedGemm",
    ),
}
NAMES = {"GeluTanh": "Gelu", "Silu": "Swish"}


def families(graph):
    return [step.family for step in lower(graph, choose_tier(), 2).steps]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("function", FUSED)
def test_a_function_ends_what_makes_its_input_and_changes_nothing_else(function, layer):
    nodes, shape, constants, fused = LAYERS[layer]
    attributes = {"approximate": "tanh"} if function == "GeluTanh" else {}
    operator = NAMES.get(function, function)
    ending = helper.make_node(operator, ["c"], ["y"], "y", **attributes)
    made = optimise(load_bytes(onnx_bytes([*nodes, ending], {"x": shape}, ["y"], constants=constants, opset=24)))
    assert [node.op_type for node in made.nodes if node.op_type != "Reshape"] == [fused]
    apart = load_bytes(onnx_bytes(nodes, {"x": shape}, ["c"], constants=constants, opset=24))
    x = {"x": RANDOM.standard_normal(shape, dtype=np.float32)}
    before = Session(optimise(apart), threads=2).run(x)["c"]
    alone = onnx_bytes([ending], {"c": before.shape}, ["y"], opset=24)
    expected = Session(optimise(load_bytes(alone))).run({"c": before})["y"]
    found = [Session(made, threads=threads).run(x)["y"] for threads in (1, 2, 3)]
    assert relative_error({"y": found[0]}, {"y": expected}) < TOLERANCE
    assert len({one.tobytes() for one in found}) == 1


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(5, 8, 8), (55, 8, 8), (7, 4, 12), (3, 24, 40), (9, 2, 6)])
def test_groups_that_fill_no_whole_blocks_at_the_end_are_convolved_in_two_parts(groups, inputs, outputs):
    weight = normal(groups * outputs, inputs, 3, 3)
    node = conv("x", "w", "y", pads=[1] * 4, group=groups)
    data = onnx_bytes([node], {"x": (2, groups * inputs, 7, 7)}, ["y"], constants={"w": weight})
    graph = optimise(load_bytes(data))
    x = {"x": RANDOM.standard_normal((2, groups * inputs, 7, 7), dtype=np.float32)}
    found = [Session(graph, threads=threads).run(x) for threads in (1, 3)]
    assert relative_error(found[0], run_ort(data, x)) < TOLERANCE
    assert found[0]["y"].tobytes() == found[1]["y"].tobytes()
    if (groups, inputs, outputs) == (55, 8, 8) and choose_tier().vector_width == 16:
        assert families(graph).count("conv_direct") == 2


@pytest.mark.parametrize("channels", [3, 8, 16, 24, 40])
@pytest.mark.parametrize("reshaped", [False, True])
def test_channels_move_between_the_first_and_the_last_axis_and_back(channels, reshaped):
    weights = {"w": normal(channels, channels, 3, 3), "v": normal(channels, 1, 3, 3)}
    shapes = {"flat": np.array([2, channels, 35]), "image": np.array([2, channels, 5, 7])}
    to_last, to_first = ([0, 2, 1], [0, 2, 1]) if reshaped else ([0, 2, 3, 1], [0, 3, 1, 2])
    views = [["a", "b"], ["f", "g"]] if reshaped else [["a", "a"], ["f", "f"]]
    nodes = [
        conv("x", "w", "a"),
        *([helper.make_node("Reshape", ["a", "flat"], ["b"], "b")] if reshaped else []),
        helper.make_node("Transpose", [views[0][1]], ["d"], "d", perm=to_last),
        helper.make_node("Softmax", ["d"], ["e"], "e", axis=-1),
        helper.make_node("Transpose", ["e"], ["f"], "f", perm=to_first),
        *([helper.make_node("Reshape", ["f", "image"], ["g"], "g")] if reshaped else []),
        conv(views[1][1], "v", "y", pads=[1] * 4, group=channels),
    ]
    outputs = ["y", "f"]
    data = onnx_bytes(nodes, {"x": (2, channels, 7, 9)}, outputs, constants={**weights, **shapes})
    x = {"x": RANDOM.standard_normal((2, channels, 7, 9), dtype=np.float32)}
    graph = optimise(load_bytes(data))
    assert "channels_to_blocks" in families(graph)
    for threads in (1, 2):
        assert relative_error(Session(graph, threads=threads).run(x), run_ort(data, x)) < TOLERANCE


def test_an_image_whose_channels_come_last_is_convolved_without_planes():
    nodes = [helper.make_node("Transpose", ["x"], ["i"], "i", perm=[0, 3, 1, 2]), conv("i", "w", "y")]
    data = onnx_bytes(nodes, {"x": (2, 9, 11, 20)}, ["y"], constants={"w": normal(8, 20, 3, 3)})
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 9, 11, 20), dtype=np.float32)}
    assert "reorder_to_blocks" not in families(graph)
    assert relative_error(Session(graph, threads=2).run(x), run_ort(data, x)) < TOLERANCE


@pytest.mark.parametrize(("group", "strides", "dilations"), [(1, [1, 1], [1, 1]), (2, [2, 1], [1, 2])])
def test_a_convolution_of_constants_is_one(group, strides, dilations):
    constants = {"i": normal(1, 4, 8, 8), "w": normal(6, 4 // group, 3, 3), "b": normal(6)}
    made = helper.make_node(
        "Conv", ["i", "w", "b"], ["c"], "c", group=group, strides=strides, dilations=dilations, pads=[1, 2, 0, 1]
    )
    nodes = [made, helper.make_node("Mul", ["c", "x"], ["y"], "y")]
    data = onnx_bytes(nodes, {"x": (1, 1, 1, 1)}, ["y"], constants=constants)
    graph, x = optimise(load_bytes(data)), {"x": np.full((1, 1, 1, 1), 1.5, np.float32)}
    assert "FusedConv" not in {node.op_type for node in graph.nodes}
    assert relative_error(Session(graph).run(x), run_ort(data, x)) < TOLERANCE


def test_the_scale_of_a_layer_goes_into_its_product():
    constants = {"w": normal(20, 12), "b": normal(12), "s": normal(12)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "p"),
        helper.make_node("Add", ["p", "b"], ["q"], "q"),
        helper.make_node("Mul", ["s", "q"], ["y"], "y"),
    ]
    data = onnx_bytes(nodes, {"x": (2, 7, 20)}, ["y"], constants=constants)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 7, 20), dtype=np.float32)}
    assert [node.op_type for node in graph.nodes if node.op_type != "Reshape"] == ["FusedGemm"]
    assert relative_error(Session(graph).run(x), run_ort(data, x)) < TOLERANCE
