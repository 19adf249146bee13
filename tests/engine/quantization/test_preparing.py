"""What a network becomes before it is calibrated: fewer layers that compute the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from onnx import helper
from quantized_models import model_bytes

from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.quantization.layers import layers_of
from powerlab.engine.quantization.prepare import prepared_for_quantization

FLOAT32 = onnx.TensorProto.FLOAT
NORM = ("gamma", "beta", "mean", "variance")
CHANNELS = 8


def norm(x, y):
    return helper.make_node("BatchNormalization", [x, *(f"{y}.{name}" for name in NORM)], [y])


def branches(groups, stride, **wide):
    """Return the nodes and weights of a sum of a 3 x 3 kernel, one of 1 x 1 and, without a stride, the input itself."""
    generator = np.random.default_rng(groups)
    steps = {"strides": [stride, stride], "group": groups}
    nodes = [
        helper.make_node("Conv", ["x", "w3"], ["c3"], **{"pads": [1] * 4, **steps, **wide}),
        norm("c3", "n3"),
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], **steps),
        norm("c1", "n1"),
        helper.make_node("Add", ["n3", "n1"], ["s"]),
    ]
    if stride == 1:
        nodes += [norm("x", "n0"), helper.make_node("Add", ["s", "n0"], ["a"])]
    nodes.append(helper.make_node("Relu", ["a" if stride == 1 else "s"], ["y"]))
    inputs = CHANNELS // groups
    constants = {
        "w3": generator.normal(0, 0.3, (CHANNELS, inputs, 3, 3)),
        "w1": generator.normal(0, 0.3, (CHANNELS, inputs, 1, 1)),
        "b1": generator.normal(0, 0.3, CHANNELS),
    }
    for node in nodes:
        if node.op_type == "BatchNormalization":
            constants |= {name: generator.uniform(0.5, 1.5, CHANNELS) for name in node.input[1:]}
    return nodes, {name: value.astype(np.float32) for name, value in constants.items()}


def prepared(nodes, constants, folder):
    path = folder / "floats.onnx"
    shape = (2, CHANNELS, 9, 11)
    path.write_bytes(model_bytes(nodes, {"x": (FLOAT32, shape)}, {"y": (FLOAT32, None)}, constants, 17))
    graph = prepared_for_quantization(load_graph(path))
    write_onnx(graph, folder / "prepared.onnx")
    x = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}
    found, expected = (run_ort(str(folder / f"{name}.onnx"), x)["y"] for name in ("prepared", "floats"))
    assert np.abs(found - expected).max() <= 2e-6 * np.abs(expected).max()
    return graph


@pytest.mark.parametrize(("groups", "stride"), [(1, 1), (1, 2), (2, 1), (CHANNELS, 1)])
def test_branches_that_are_summed_become_one_layer(groups, stride, tmp_path):
    graph = prepared(*branches(groups, stride), tmp_path)
    assert [node.op_type for node in graph.nodes] == ["Conv", "Relu"]
    assert len(layers_of(graph)) == 1


@pytest.mark.parametrize("wide", [{"dilations": [2, 2], "pads": [2] * 4}, {"auto_pad": "SAME_UPPER", "pads": None}])
def test_branches_of_other_windows_stay_apart(wide, tmp_path):
    given = {name: value for name, value in wide.items() if value is not None}
    nodes, constants = branches(1, 1, **given)
    if "pads" in wide and wide["pads"] is None:
        del nodes[0].attribute[[one.name for one in nodes[0].attribute].index("pads")]
    graph = prepared(nodes, constants, tmp_path)
    assert sum(node.op_type == "Conv" for node in graph.nodes) == 2


def test_a_branch_that_others_read_stays_one(tmp_path):
    nodes, constants = branches(1, 1)
    nodes[-1] = helper.make_node("Mul", ["a", "n3"], ["y"])
    graph = prepared(nodes, constants, tmp_path)
    assert sum(node.op_type == "Conv" for node in graph.nodes) == 2


@pytest.mark.parametrize("shape", [(), (1,), (CHANNELS, 1, 1), (1, CHANNELS, 1, 1)])
@pytest.mark.parametrize("first", [False, True])
def test_what_is_added_to_each_channel_becomes_the_bias(shape, first, tmp_path):
    nodes, constants = branches(1, 1)
    constants["added"] = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    names = ["added", "n1"] if first else ["n1", "added"]
    nodes[4:5] = [helper.make_node("Add", names, ["t"]), helper.make_node("Add", ["n3", "t"], ["s"])]
    graph = prepared(nodes, constants, tmp_path)
    assert [node.op_type for node in graph.nodes] == ["Conv", "Relu"]


@pytest.mark.parametrize("shape", [(11,), (9, 1), (CHANNELS, 9, 11), (2, 1, 1, 1)])
def test_what_differs_between_pixels_or_images_stays_a_sum(shape, tmp_path):
    nodes, constants = branches(1, 1)
    constants["added"] = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    nodes[4:5] = [helper.make_node("Add", ["n1", "added"], ["t"]), helper.make_node("Add", ["n3", "t"], ["s"])]
    graph = prepared(nodes, constants, tmp_path)
    assert "Add" in [node.op_type for node in graph.nodes]


@pytest.mark.parametrize(("inputs", "outputs", "integers"), [(4, 4, 0), (8, 24, 0), (16, 16, 1), (9, 300, 1)])
def test_matrices_of_few_products_stay_floats(inputs, outputs, integers, tmp_path):
    """Such as those from attention's heads to heads: rounding what they read takes longer than they do."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    constants = {"w": np.ones((inputs, outputs), np.float32)}
    path = tmp_path / "m.onnx"
    path.write_bytes(model_bytes(nodes, {"x": (FLOAT32, (5, 7, inputs))}, {"y": (FLOAT32, None)}, constants, 17))
    assert len(layers_of(prepared_for_quantization(load_graph(path)))) == integers
