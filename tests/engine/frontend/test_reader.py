"""ONNX files to graphs: what old and new files look like, and one sentence for each wrong one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import check_against_ort, load_bytes, onnx_bytes, random_inputs, relative_error, run_ort
from engine_reference import run_graph
from onnx import TensorProto, helper, numpy_helper

from powerlab.backends.onnx_export import export_onnx
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise

WEIGHT = np.random.default_rng(3).standard_normal((3, 2, 3, 3), dtype=np.float32)
CONV = helper.make_node("Conv", ["x", "w"], ["c"], "the conv")
RELU = helper.make_node("Relu", ["c"], ["y"], "the relu")


def small(x=(1, 2, 6, 6), **more):
    return onnx_bytes([CONV, RELU], {"x": x}, constants={"w": WEIGHT}, **more)


def test_a_file_is_read_by_path(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(small())
    graph = load_graph(path)
    assert [(info.name, info.shape) for info in graph.inputs] == [("x", (1, 2, 6, 6))]
    assert [(info.name, info.shape) for info in graph.outputs] == [("y", (1, 3, 4, 4))]
    assert [str(node) for node in graph.nodes] == ["Conv node 'the conv'", "Relu node 'the relu'"]
    assert load_graph(str(path)).nodes == graph.nodes


def test_old_files_list_their_weights_as_inputs():
    graph = load_bytes(small(opset=7, inputs_too=["w"]))
    assert [info.name for info in graph.inputs] == ["x"]


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21, 23])
def test_opsets_from_7_on_are_read(opset):
    check_against_ort(small(opset=opset))


def test_opset_6_is_refused():
    with pytest.raises(PowerlabError, match=r"opset 6; export the model with opset 7 or newer"):
        load_bytes(small(opset=6))


def test_nodes_out_of_order_are_sorted():
    graph = load_bytes(onnx_bytes([RELU, CONV], {"x": (1, 2, 6, 6)}, constants={"w": WEIGHT}))
    assert [node.op_type for node in graph.nodes] == ["Conv", "Relu"]


def test_external_data_beside_the_model_is_read(tmp_path):
    model = onnx.load_from_string(small())
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    graph = load_graph(tmp_path / "m.onnx")
    np.testing.assert_array_equal(graph.constants["w"], WEIGHT)


def test_open_axes_are_given_by_shape_or_batch_size():
    data = small(x=("N", 2, "H", 6))
    assert load_bytes(data, {"x": (4, 2, 8, 6)}).outputs[0].shape == (4, 3, 6, 4)
    assert load_bytes(small(x=("N", 2, 6, 6)), batch_size=5).outputs[0].shape == (5, 3, 4, 4)
    assert load_bytes(small(), batch_size=2).outputs[0].shape == (2, 3, 4, 4)


def test_an_open_axis_is_named_with_the_way_to_give_it():
    with pytest.raises(PowerlabError) as caught:
        load_bytes(small(x=("N", 2, "H", 6)))
    assert str(caught.value) == (
        "its input 'x' leaves the size of axis 0 ('N') open; "
        'give it, for example shapes={"x": (1, 2, 1, 6)} or --input-shape x=1x2x1x6.'
    )
    with pytest.raises(PowerlabError, match=r"axis 2 \('H'\) open"):
        load_bytes(small(x=("N", 2, "H", 6)), batch_size=2)


def test_a_name_of_several_lines_is_told_in_one():
    node = helper.make_node("Relu", ["two\nlines"], ["y"])
    with pytest.raises(PowerlabError, match=r'"two\\nlines": ') as caught:
        load_bytes(onnx_bytes([node], {"two\nlines": ("N", 2)}, ["y"]))
    assert "\n" not in str(caught.value)


def edited(edit):
    model = onnx.load_from_string(small())
    edit(model.graph, model)
    return model.SerializeToString()


def _no_shape(graph, _model):
    graph.input[0].type.tensor_type.ClearField("shape")


def _float16_weight(graph, _model):
    graph.initializer[0].CopyFrom(numpy_helper.from_array(WEIGHT.astype(np.float16), "w"))
    graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16


def test_half_precision_models_are_computed_in_float32():
    graph = load_bytes(edited(_float16_weight))
    assert {info.dtype for info in graph.tensors.values()} == {np.dtype(np.float32)}


def _subgraph(graph, model):
    branch = helper.make_graph([], "branch", [], [])
    graph.node[1].attribute.append(helper.make_attribute("then", branch))


WRONG = {
    "no graph": (lambda g, m: m.ClearField("graph"), "holds no ONNX graph"),
    "no nodes": (lambda g, m: g.ClearField("node"), "holds no ONNX graph"),
    "no outputs": (lambda g, m: g.ClearField("output"), "has no outputs"),
    "no input": (lambda g, m: g.ClearField("input"), "Conv node 'the conv' reads the tensor 'x', which nothing makes"),
    "no weight": (lambda g, m: g.ClearField("initializer"), "reads the tensor 'w', which nothing makes"),
    "no opset": (lambda g, m: m.ClearField("opset_import"), "opset 0"),
    "no shape": (_no_shape, r"'x' has no shape; give it, for example"),
    "output missing": (lambda g, m: setattr(g.output[0], "name", "z"), "promises the output 'z', which no node makes"),
    "made twice": (lambda g, m: g.node[1].output.__setitem__(0, "c"), "makes the tensor 'c', which is already there"),
    "makes a weight": (lambda g, m: g.node[1].output.__setitem__(0, "w"), "makes the tensor 'w', which is already"),
    "cycle": (lambda g, m: g.node[0].input.__setitem__(0, "y"), "needs, directly or through others, its own output"),
    "own output": (lambda g, m: g.node[1].input.__setitem__(0, "y"), "its own output"),
    "domain": (lambda g, m: setattr(g.node[1], "domain", "com.microsoft"), "domain 'com.microsoft'"),
    "subgraph": (_subgraph, "Relu node 'the relu' has the attribute 'then', which Relu does not take"),
    "no output": (lambda g, m: g.node[1].ClearField("output"), "Relu node 'the relu' has no output"),
    "input twice": (lambda g, m: g.input.append(g.input[0]), "lists an input twice"),
    "input type": (lambda g, m: setattr(g.input[0].type.tensor_type, "elem_type", 8), "input 'x' has the ONNX element"),
    "no tensor": (lambda g, m: g.input[0].type.ClearField("tensor_type"), "input 'x' is not a tensor"),
    "huge": (
        lambda g, m: setattr(g.input[0].type.tensor_type.shape.dim[2], "dim_value", 2**62),
        "the input 'x' has the impossible shape",
    ),
    "extra output": (
        lambda g, m: (g.node[0].output.append("z"), g.node[1].input.__setitem__(0, "z")),
        "reads 'z', an extra output that the engine does not compute",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_sentence_with_its_name(name, tmp_path):
    edit, sentence = WRONG[name]
    path = tmp_path / "wrong.onnx"
    path.write_bytes(edited(edit))
    with pytest.raises(PowerlabError, match=sentence) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path} cannot be loaded: ")
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"z": (1,)}, "it has no input 'z'; its inputs are 'x'"),
        ({"x": (1, 2)}, r"input 'x' has 4 axes, but the shape \(1, 2\)"),
        ({"x": (1, 2, 0, 6)}, "dimension of size 0 or less"),
        ({"x": (1, 5, 6, 6)}, "Conv node 'the conv'"),
    ],
)
def test_wrong_shapes_given_are_one_sentence(shapes, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        load_bytes(small(), shapes)


@pytest.mark.parametrize("content", [b"", b"hello, world", b"<html>", b"\x7fELF" + b"\0" * 60, b"PK\x03\x04"])
def test_what_is_no_onnx_is_one_sentence(content, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(PowerlabError, match=r"model.onnx cannot be loaded: it "):
        load_graph(path)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(PowerlabError, match=r"is not a model file"):
        load_graph(tmp_path)


def test_a_name_with_control_characters_stays_on_one_line():
    with pytest.raises(PowerlabError) as caught:
        load_bytes(edited(lambda g, m: setattr(g.node[1], "op_type", "Re\nlu" + "x" * 1000)))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_ten_thousand_nodes_in_reverse_are_no_problem():
    chain = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(10_000)]
    data = onnx_bytes(reversed(chain), {"t0": (1, 2)}, ["t10000"])
    assert len(optimise(load_bytes(data)).nodes) == 1


def field(number, content):
    """Return a length-delimited protobuf field."""
    size, prefix = len(content), b""
    while size >= 0x80:
        prefix, size = prefix + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + prefix + bytes([size]) + content


def test_subgraphs_nested_deeper_than_any_stack_are_refused():
    graph = b""
    for _ in range(5000):  # a graph in an attribute of a node of a graph
        attribute = field(1, b"then") + b"\xa0\x01\x05" + field(6, graph)
        graph = field(1, field(5, attribute) + field(2, b"y") + field(4, b"If"))
    data = field(7, graph) + field(8, b"\x10\x11")
    with pytest.raises(PowerlabError, match="messages are nested more than 64 deep"):
        load_bytes(data)


def test_export_and_reading_are_inverse():
    graph = load_graph("mobilenetv2", {"x": (1, 3, 32, 32)})
    again = load_bytes(export_onnx(graph))
    assert [str(node) for node in again.nodes] == [str(node) for node in graph.nodes]
    for found, node in zip(again.nodes, graph.nodes, strict=True):
        assert (found.inputs, found.outputs) == (node.inputs, node.outputs)
        assert found.attributes == {  # a file's floats are float32
            key: float(np.float32(value)) if isinstance(value, float) else value
            for key, value in node.attributes.items()
        }
    assert again.tensors == graph.tensors
    assert all(np.array_equal(again.constants[name], value) for name, value in graph.constants.items())


def test_an_optimised_graph_is_not_exported():
    with pytest.raises(PowerlabError, match=r"FusedConv node .* export the graph before optimising it"):
        export_onnx(optimise(load_bytes(small())))


def test_several_inputs_and_outputs_keep_their_names():
    nodes = [
        helper.make_node("Add", ["a", "b"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
        helper.make_node("Identity", ["sum"], ["z"]),
    ]
    data = onnx_bytes(nodes, {"a": (2, 3), "b": (2, 3)}, ["y", "z", "sum"])
    graph = load_bytes(data)
    inputs = random_inputs(graph)
    assert relative_error(run_graph(optimise(graph), inputs), run_ort(data, inputs)) == 0
