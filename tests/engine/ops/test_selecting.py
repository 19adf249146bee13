"""Operators that make as many rows as values say: as ONNX Runtime has them, on random inputs and at the edges."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "b": TensorProto.BOOL}


def model(folder, operator, inputs, outputs, **attributes):
    """A model of one node with its inputs fed, whose axes are all open."""
    node = helper.make_node(operator, list(inputs), list(outputs), "n", **attributes)
    graph = helper.make_graph(
        [node],
        "test",
        [
            helper.make_tensor_value_info(
                name, KINDS[value.dtype.kind], [f"{name}{axis}" for axis in range(value.ndim)]
            )
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info(name, KINDS[kind], None) for name, kind in outputs.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def compare(path, inputs):
    found, expected = Session(path, threads=1).run(inputs), run_ort(path.read_bytes(), inputs)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    boxes=st.integers(1, 60),
    limits=st.tuples(
        st.one_of(st.integers(0, 60), st.just(2**63 - 1)),
        st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        st.sampled_from([None, 0.0, 0.5, 2.0]),
    ),
    centred=st.integers(0, 1),
)
def test_suppression_leaves_what_onnx_runtime_leaves(tmp_path_factory, seed, boxes, limits, centred):
    generator, (most, overlap, least) = np.random.default_rng(seed), limits
    inputs = {
        "boxes": np.asfortranarray(generator.random((2, boxes, 4), np.float32)),
        "scores": np.round(generator.random((2, 3, boxes), np.float32), 1),  # with ties
        "most": np.array([most]),
        "overlap": np.float32([overlap]),
    }
    if least is not None:
        inputs["least"] = np.float32([least])
    path = model(tmp_path_factory.mktemp("nms"), "NonMaxSuppression", inputs, {"y": "i"}, center_point_box=centred)
    compare(path, inputs)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("ordered", [0, 1])
def test_what_is_there_once(tmp_path, axis, ordered):
    x = np.random.default_rng(3).integers(0, 3, (4, 3)).astype(np.float32)
    x[2] = x[0]
    options = {"sorted": ordered} | ({} if axis is None else {"axis": axis})
    path = model(tmp_path, "Unique", {"x": x}, {"y": "f", "first": "i", "inverse": "i", "counts": "i"}, **options)
    compare(path, {"x": x})


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_what_a_condition_chooses(tmp_path, axis):
    x = np.random.default_rng(3).random((4, 3), np.float32)
    options = {} if axis is None else {"axis": axis}
    for condition in ([True, False, True], [False], [False, False, False]):
        inputs = {"x": x, "condition": np.array(condition)}
        compare(model(tmp_path, "Compress", inputs, {"y": "f"}, **options), inputs)


def test_boxes_are_picked_and_scored_after_suppression(tmp_path):
    """The tail of a detector: what suppression leaves is gathered, and computed with."""
    generator = np.random.default_rng(5)
    nodes = [
        helper.make_node("Sigmoid", ["logits"], ["scores"]),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["left"]),
        helper.make_node("Gather", ["left", "two"], ["places"], axis=1),
        helper.make_node("Squeeze", ["places", "one"], ["rows"]),
        helper.make_node("Squeeze", ["boxes", "zero"], ["flat"]),
        helper.make_node("Gather", ["flat", "rows"], ["picked"]),
        helper.make_node("Mul", ["picked", "size"], ["y"]),
    ]
    constants = {
        "most": np.array([10]),
        "overlap": np.float32([0.4]),
        "least": np.float32([0.6]),
        "size": np.float32(640),
        "zero": np.array([0]),
        "one": np.array([1]),
        "two": np.array([2]),
    }
    graph = helper.make_graph(
        nodes,
        "tail",
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 50, 4]),
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2, 50]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    session = Session(path, threads=1)
    for shift in (0.0, 1.0, -9.0):  # the last leaves none
        inputs = {
            "boxes": generator.random((1, 50, 4), np.float32),
            "logits": generator.standard_normal((1, 2, 50), dtype=np.float32) + np.float32(shift),
        }
        found, expected = session.run(inputs)["y"], run_ort(path.read_bytes(), inputs)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("operator", "inputs", "sentence"),
    [
        ("Compress", {"x": np.float32([1, 2]), "c": np.float32([1])}, "needs a list of truth values"),
        ("Compress", {"x": np.float32([1, 2]), "c": np.array([True] * 3)}, "chooses among 3 elements"),
        (
            "NonMaxSuppression",
            {"b": np.ones((1, 2, 4), np.float32), "s": np.ones((1, 1, 3), np.float32)},
            "which do not fit",
        ),
        (
            "NonMaxSuppression",
            {"b": np.ones((1, 2, 4), np.float32), "s": np.ones((1, 1, 2), np.float32), "m": np.array([1, 2])},
            "needs one number as input 3, but it has 2",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, operator, inputs, sentence):
    node = helper.make_node(operator, list(inputs), ["y"], "n")
    infos = [helper.make_tensor_value_info(name, KINDS[value.dtype.kind], None) for name, value in inputs.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    made = helper.make_model(helper.make_graph([node], "test", infos, outputs), ir_version=8)
    made.opset_import[0].version = 17
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(PowerlabError, match=f"{operator} node 'n' .*{sentence}"):
        Session(path, threads=1).run(inputs)
