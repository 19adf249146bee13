"""Sequences of tensors, which exporters write for Python lists, leave nothing but tensors; judged by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import load_bytes, relative_error, run_ort
from general_models import check_by_ort, model_bytes
from onnx import TensorProto, helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

X = np.random.default_rng(7).standard_normal((4, 7, 3), dtype=np.float32)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs, outputs, f"make {outputs[0]}", **attributes)


def tensor(name, kind=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def sequence(name):
    return helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None)


def check(nodes, constants):
    return check_by_ort(model_bytes(nodes, {"x": X}, constants=constants), {"x": X})["y"]


@pytest.mark.parametrize(
    ("split", "attributes"),
    [
        ((), {"axis": 1}),
        ((), {"axis": -1, "keepdims": 0}),
        ((np.int64(3),), {"axis": 1}),
        ((np.array([3, 4]),), {"axis": 1}),
    ],
)
def test_parts_of_an_axis_are_taken_apart_and_joined_otherwise(split, attributes):
    nodes = [
        node("SplitToSequence", ["x", "split"][: 1 + len(split)], ["parts"], **attributes),
        node("SequenceAt", ["parts", "last"], ["taken"]),
        node("SequenceErase", ["parts", "last"], ["fewer"]),
        node("SequenceInsert", ["fewer", "taken", "first"], ["turned"]),
        node("SequenceLength", ["turned"], ["length"]),
        node("Cast", ["length"], ["count"], to=TensorProto.FLOAT),
        node("ConcatFromSequence", ["turned"], ["joined"], axis=1),
        node("Mul", ["joined", "count"], ["y"]),
    ]
    constants = {"last": np.int64(-1), "first": np.int64(0), **dict(zip(["split"], split, strict=False))}
    check(nodes, constants)


def appending(rounds_of):
    """Return nodes of a loop that appends a row of x a round, as scripted programs do."""
    body = helper.make_graph(
        [
            node("Gather", ["x", "i"], ["row"], axis=0),
            node("Mul", ["row", "scale"], ["scaled"]),
            node("SequenceInsert", ["rows", "scaled"], ["more"]),
            node("Identity", ["go"], ["on"]),
        ],
        "body",
        [tensor("i", TensorProto.INT64, ()), tensor("go", TensorProto.BOOL, ()), sequence("rows")],
        [tensor("on", TensorProto.BOOL, ()), sequence("more")],
    )
    return [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", [rounds_of, "", "none"], ["all"], body=body),
        node("Identity", ["all"], ["same"]),
        node("ConcatFromSequence", ["same"], ["y"], axis=0, new_axis=1),
    ]


def test_a_loop_appends_to_a_list():
    found = check(appending("rounds"), {"rounds": np.int64(3), "scale": np.float32(2)})
    np.testing.assert_array_equal(found, 2 * X[:3])


def test_a_list_outlives_the_stages_of_a_loop_whose_rounds_only_a_run_tells(tmp_path):
    inputs = {"x": X, "n": np.array([2], np.int64)}
    nodes = [node("Mul", ["n", "one"], ["rounds"]), *appending("rounds")]
    data = model_bytes(nodes, inputs, constants={"scale": np.float32(2), "one": np.array([1])})
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    session = Session(path)
    for rounds in (2, 4, 2):
        given = {**inputs, "n": np.array([rounds], np.int64)}
        assert relative_error(session.run(given), run_ort(data, given)) < 1e-6


def test_what_is_optional_is_there():
    nodes = [
        node("Optional", ["x"], ["maybe"]),
        node("OptionalHasElement", ["maybe"], ["there"]),
        node("OptionalGetElement", ["maybe"], ["got"]),
        node("Where", ["there", "got", "zero"], ["y"]),
    ]
    np.testing.assert_array_equal(check(nodes, {"zero": np.float32(0)}), X)


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ([node("SequenceAt", ["x", "place"], ["y"])], "SequenceAt node 'make y' needs a sequence as its input 1."),
        (
            [node("SequenceConstruct", ["x", "x"], ["pair"]), node("SequenceAt", ["pair", "place"], ["y"])],
            "SequenceAt node 'make y' reads tensor 2 of a sequence of 2 tensors, which are counted from 0.",
        ),
        (
            [node("SequenceEmpty", [], ["none"]), node("ConcatFromSequence", ["none"], ["y"], axis=0)],
            "ConcatFromSequence node 'make y' joins a sequence that holds no tensor.",
        ),
        (
            [node("SequenceConstruct", ["x"], ["one"]), node("Relu", ["one"], ["y"])],
            "Relu node 'make y' lacks its input 1.",
        ),
    ],
)
def test_what_no_list_allows_is_said(nodes, sentence):
    with pytest.raises(PowerlabError) as caught:
        load_bytes(model_bytes(nodes, {"x": X}, constants={"place": np.int64(2)}))
    assert str(caught.value) == sentence


def test_a_list_cannot_be_an_output():
    data = onnx.load_from_string(model_bytes([node("SequenceConstruct", ["x"], ["y"])], {"x": X}))
    data.graph.output[0].CopyFrom(sequence("y"))
    with pytest.raises(PowerlabError, match="output 'y', a sequence of tensors"):
        load_bytes(data.SerializeToString())
