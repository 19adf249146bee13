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


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(5, 8, 8), (55, 8, 24), (7, 4, 12), (3, 24, 40), (9, 2, 6)])
def test_groups_that_fill_no_whole_blocks_at_the_end_are_convolved_in_two_parts(groups, inputs, outputs):
    weight = normal(groups * outputs, inputs, 3, 3)
    node = conv("x", "w", "y", pads=[1] * 4, group=groups)
    data = onnx_bytes([node], {"x": (2, groups * inputs, 7, 7)}, ["y"], constants={"w": weight})
    graph = optimise(load_bytes(data))
    x = {"x": RANDOM.standard_normal((2, groups * inputs, 7, 7), dtype=np.float32)}
    found = [Session(graph, threads=threads).run(x) for threads in (1, 3)]
    assert relative_error(found[0], run_ort(data, x)) < TOLERANCE
    assert found[0]["y"].tobytes() == found[1]["y"].tobytes()
    if (groups, inputs, outputs) == (55, 8, 24) and choose_tier().vector_width == 16:
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


# Branches of x, which has 8 channels, that make 8: "?" being the result.
BRANCHES = {
    "narrow": [conv("x", "w1", "?")],
    "wide, moved": [conv("x", "w3", "?", pads=[0, 2, 2, 0])],
    "wide": [conv("x", "w3", "?", pads=[1] * 4)],
    "flat": [conv("x", "w13", "?", pads=[0, 1, 0, 1])],
    "normalised": [
        conv("x", "w1", "?.c"),
        helper.make_node("BatchNormalization", ["?.c", "s", "b", "m", "v"], ["?"], "?"),
    ],
    "norm": [helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["?"], "?")],
    "grouped": [conv("x", "g3", "?", pads=[1] * 4, group=4)],
    "grouped, narrow": [conv("x", "g1", "?", group=4)],
    "dilated": [conv("x", "w3", "?", pads=[2] * 4, dilations=[2, 2])],
}
MERGED = [
    *(("wide", "narrow"), ("norm", "wide"), ("normalised", "wide"), ("wide", "flat"), ("narrow", "norm")),
    *(("grouped", "grouped, narrow"), ("norm", "grouped"), ("wide", "wide"), ("norm", "norm")),
]
APART = [("wide", "grouped"), ("wide, moved", "wide"), ("dilated", "wide")]


def branch(name, out):
    nodes = []
    for node in BRANCHES[name]:
        made = helper.make_node(node.op_type, list(node.input), list(node.output))
        made.CopyFrom(node)
        made.name = made.output[0].replace("?", out)
        for names in (made.input, made.output):
            names[:] = [one.replace("?", out) for one in names]
        nodes.append(made)
    return nodes


@pytest.mark.parametrize(("one", "other"), MERGED + APART)
def test_branches_that_are_summed_are_one_convolution(one, other):
    vectors = {name: np.abs(normal(8)) + 0.5 for name in "sbmv"}
    kernels = {"w1": normal(8, 8, 1, 1), "w3": normal(8, 8, 3, 3), "w13": normal(8, 8, 1, 3)}
    grouped = {"g3": normal(8, 2, 3, 3), "g1": normal(8, 2, 1, 1)}
    last = [helper.make_node("Add", ["one", "two"], ["c"], "c"), helper.make_node("Relu", ["c"], ["y"], "y")]
    nodes = [*branch(one, "one"), *branch(other, "two"), *last]
    data = onnx_bytes(nodes, {"x": (2, 8, 9, 7)}, ["y"], constants={**vectors, **kernels, **grouped})
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 8, 9, 7), dtype=np.float32)}
    count = sum(node.op_type in ("FusedConv", "ScaleShift", "Add") for node in graph.nodes)
    assert (count == 1) is ((one, other) in MERGED and (one, other) != ("norm", "norm"))
    assert relative_error(Session(graph, threads=2).run(x), run_ort(data, x)) < TOLERANCE


def test_branches_that_others_read_stay_apart():
    nodes = [conv("x", "w", "a"), conv("x", "v", "b"), helper.make_node("Add", ["a", "b"], ["y"], "y")]
    constants = {"w": normal(8, 8, 1, 1), "v": normal(8, 8, 1, 1)}
    data = onnx_bytes(nodes, {"x": (1, 8, 5, 5)}, ["y", "a"], constants=constants)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((1, 8, 5, 5), dtype=np.float32)}
    assert sum(node.op_type == "FusedConv" for node in graph.nodes) == 2
    assert relative_error(Session(graph).run(x), run_ort(data, x)) < TOLERANCE


@pytest.mark.parametrize("widths", [(8, 8), (5, 11, 3), (24, 24), (1, 1, 1), (20, 7, 33), (40, 16)])
@pytest.mark.parametrize("pixels", [(1, 1), (3, 1), (5, 2), (4, 9)])
def test_channels_that_fill_no_whole_blocks_are_joined_and_cut_in_blocks(widths, pixels):
    weights = {f"w{index}": normal(width, 6, 1, 1) for index, width in enumerate(widths)}
    names = [f"c{index}" for index in range(len(widths))]
    total = sum(widths)
    weights |= {"v": normal(total, 1, 1, 1), "one": np.array([1])}
    parts = [(0, total - 1), (1, total), (total // 3, total - total // 4)]
    nodes = [
        *(conv("x", f"w{index}", name) for index, name in enumerate(names)),
        helper.make_node("Concat", names, ["j"], "j", axis=1),
        conv("j", "v", "d", group=total),
    ]
    for index, (begin, end) in enumerate(parts):
        weights |= {f"begin{index}": np.array([begin]), f"end{index}": np.array([end])}
        nodes.append(
            helper.make_node("Slice", ["d", f"begin{index}", f"end{index}", "one"], [f"s{index}"], f"s{index}")
        )
        weights[f"u{index}"] = normal(end - begin, 1, 1, 1)
        nodes.append(conv(f"s{index}", f"u{index}", f"y{index}", group=end - begin))
    data = onnx_bytes(nodes, {"x": (2, 6, *pixels)}, ["y0", "y1", "y2"], constants=weights)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 6, *pixels), dtype=np.float32)}
    found = [Session(graph, threads=threads).run(x) for threads in (1, 3)]
    assert relative_error(found[0], run_ort(data, x)) < TOLERANCE
    assert all(found[0][name].tobytes() == found[1][name].tobytes() for name in found[0])
    if total > 2:
        assert "move_channels" in families(graph)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("pixels", [1, 5, 13])
def test_pixels_of_an_image_in_blocks_are_reduced_there(operator, keepdims, pixels):
    reduced = helper.make_node(operator, ["c"], ["y"], "y", axes=[2], keepdims=keepdims)
    data = onnx_bytes([conv("x", "w", "c"), reduced], {"x": (2, 4, pixels)}, ["y"], constants={"w": normal(21, 4, 1)})
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 4, pixels), dtype=np.float32)}
    assert not any(family.startswith("reduce_") for family in families(graph))
    assert relative_error(Session(graph, threads=2).run(x), run_ort(data, x)) < TOLERANCE


@pytest.mark.parametrize(
    ("dilations", "size"), [([2, 2], (32, 32)), ([4, 4], (32, 33)), ([2, 1], (19, 16)), ([3, 2], (27, 30))]
)
@pytest.mark.parametrize("residual", [False, True])
def test_dilated_convolutions_of_many_channels_are_winograds(dilations, size, residual):
    down, across = dilations
    pads = [down, across, down, across]
    nodes = [conv("x", "w", "c", pads=pads, dilations=dilations), helper.make_node("Sigmoid", ["x"], ["r"], "r")]
    nodes.append(helper.make_node("Add", ["c", "r"] if residual else ["c", "z"], ["y"], "y"))
    constants = {"w": normal(96, 96, 3, 3), "z": np.float32(1)}
    data = onnx_bytes(nodes, {"x": (2, 96, *size)}, ["y"], constants=constants)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 96, *size), dtype=np.float32)}
    assert any(family.startswith("conv_winograd") for family in families(graph))
    found = [Session(graph, threads=threads).run(x) for threads in (1, 3)]
    assert relative_error(found[0], run_ort(data, x)) < 1e-3
    assert found[0]["y"].tobytes() == found[1]["y"].tobytes()


DARKNET = {
    "point": ((24, 24, 1, 1), {}),
    "winograd": ((64, 64, 3, 3), {"pads": [1] * 4}),
    "depthwise": ((24, 1, 5, 5), {"pads": [2] * 4, "group": 24}),
    "grouped": ((64, 4, 3, 3), {"pads": [1] * 4, "group": 16}),
    "dilated": ((24, 24, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
}


@pytest.mark.parametrize("activation", ["LeakyRelu", "Relu", "Clip"])
@pytest.mark.parametrize("kind", DARKNET)
def test_a_sum_behind_an_activation_needs_no_step_of_its_own(kind, activation):
    weights, attributes = DARKNET[kind]
    ends = {"LeakyRelu": ((), {"alpha": 0.1}), "Relu": ((), {}), "Clip": (("low", "high"), {})}
    more, numbers = ends[activation]
    nodes = [
        conv("x", "w", "c", **attributes),
        helper.make_node(activation, ["c", *more], ["a"], "a", **numbers),
        helper.make_node("Add", ["x", "a"], ["s"], "s"),
        conv("s", "v", "d"),
        helper.make_node("LeakyRelu", ["d"], ["b"], "b", alpha=0.2),
        helper.make_node("Add", ["b", "s"], ["y"], "y"),
    ]
    shape = (2, weights[0], 28, 27)
    bounds = {"low": np.float32(-0.25), "high": np.float32(0.5)} if activation == "Clip" else {}
    constants = {"w": normal(*weights), "v": normal(weights[0], weights[0], 1, 1), **bounds}
    data = onnx_bytes(nodes, {"x": shape}, ["y"], constants=constants, opset=24)
    x = {"x": RANDOM.standard_normal(shape, dtype=np.float32)}
    sessions = [Session(optimise(load_bytes(data)), threads=threads) for threads in (1, 2, 3)]
    found = [session.run(x)["y"] for session in sessions]
    assert not [kernel for kernel, _ in sessions[0].steps() if kernel.startswith("add")]
    assert relative_error({"y": found[0]}, run_ort(data, x)) < TOLERANCE
    assert len({one.tobytes() for one in found}) == 1


def test_a_sum_that_is_read_before_its_activation_keeps_its_step():
    nodes = [
        conv("x", "w", "c"),
        helper.make_node("Relu", ["c"], ["a"], "a"),
        helper.make_node("Add", ["x", "a"], ["s"], "s"),
        helper.make_node("Mul", ["s", "a"], ["y"], "y"),
    ]
    data = onnx_bytes(nodes, {"x": (1, 24, 5, 5)}, ["y"], constants={"w": normal(24, 24, 1, 1)}, opset=24)
    x = {"x": RANDOM.standard_normal((1, 24, 5, 5), dtype=np.float32)}
    assert relative_error(Session(optimise(load_bytes(data))).run(x), run_ort(data, x)) < TOLERANCE
