"""Scan is a Loop that takes a part of its inputs in each round; judged by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, relative_error, run_ort
from onnx import TensorProto, helper, numpy_helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise

FLOAT = TensorProto.FLOAT
X = np.random.default_rng(5).standard_normal((4, 3), dtype=np.float32)
START = np.float32([1, 2, 3])


def info(name):
    return helper.make_tensor_value_info(name, FLOAT, None)


def scan_bytes(*, inputs=None, opset=17, outputs=("y", "rows"), names=("start", "x"), element="element", **attributes):
    """A running state: it is halved and an element added in each round; the rows are its squares."""
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "half"], ["less"]),
            helper.make_node("Add", ["less", element], ["next"]),
            helper.make_node("Mul", ["next", "next"], ["row"]),
        ],
        "body",
        [info("state"), info(element)],
        [info("next"), info("row")],
        [numpy_helper.from_array(np.float32(0.5), "half")],
    )
    inputs = inputs or {"start": START, "x": X}
    nodes = [helper.make_node("Scan", list(names), list(outputs), "n", body=body, num_scan_inputs=1, **attributes)]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, FLOAT, value.shape) for name, value in inputs.items()],
        [info(name) for name in outputs if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return model.SerializeToString()


def check(data, inputs):
    found = Session(optimise(load_bytes(data)), threads=1).run(inputs)
    assert relative_error(found, run_ort(data, inputs)) < 1e-6


@pytest.mark.parametrize("there", [0, 1])
@pytest.mark.parametrize("back", [0, 1])
def test_a_state_is_carried_and_rows_are_gathered(there, back):
    data = scan_bytes(scan_input_directions=[there], scan_output_directions=[back])
    check(data, {"start": START, "x": X})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_any_axis_is_scanned_and_stacked(axis):
    start = START if axis == 0 else START[:1].repeat(4)
    inputs = {"start": start, "x": X}
    check(scan_bytes(inputs=inputs, scan_input_axes=[axis], scan_output_axes=[axis]), inputs)


def test_the_body_may_call_its_part_as_the_whole_is_called():
    inputs = {"start": START, "x": X}
    found = Session(optimise(load_bytes(scan_bytes(element="x"))), threads=1).run(inputs)
    assert relative_error(found, run_ort(scan_bytes(), inputs)) < 1e-6


def test_an_output_that_nobody_reads_needs_no_name():
    inputs = {"start": START, "x": X}
    found = Session(optimise(load_bytes(scan_bytes(outputs=("y", "")))), threads=1).run(inputs)
    assert found.keys() == {"y"}
    np.testing.assert_allclose(found["y"], run_ort(scan_bytes(), inputs)["y"], rtol=1e-6)


def test_opset_8_scans_each_element_of_a_batch():
    inputs = {"start": np.stack([START, -START]), "x": np.stack([X, 2 * X])}
    data = scan_bytes(inputs=inputs, opset=8, names=("", "start", "x"))
    found = Session(optimise(load_bytes(data)), threads=1).run(inputs)
    for image in (0, 1):
        single = {name: value[image] for name, value in inputs.items()}
        expected = run_ort(scan_bytes(), single)
        assert relative_error({name: value[image] for name, value in found.items()}, expected) < 1e-6


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"scan_input_axes": [2]}, "names the axis 2"),
        ({"scan_input_axes": [0, 1]}, "has no input|lacks its input|which does not fit|needs one length"),
        ({"scan_input_directions": [0, 1]}, "has 2 numbers as scan_input_directions"),
        ({"outputs": ("y",)}, "has 1 outputs, but its body makes 2"),
        ({"inputs": {"start": START, "x": np.zeros((9000, 3), np.float32)}}, "makes more than 16384 nodes"),
    ],
)
def test_what_cannot_be_scanned_is_one_sentence(attributes, sentence):
    with pytest.raises(PowerlabError, match=f"(Scan|Loop) node 'n' .*({sentence})"):
        load_bytes(scan_bytes(**attributes))
