"""The runner of the node cases and the page it makes: both must tell a wrong answer from a right one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

import node_cases
import write_operators_page
from node_cases import Case, Outcome, Verdict, run_case

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def case(node, inputs, outputs, types=(), is_float32=True):
    """Return a case of one node; ``types`` are those of the inputs, float32 where left out."""
    kinds = [*types, *[FLOAT] * len(inputs)]
    graph = helper.make_graph(
        [node],
        "case",
        [helper.make_tensor_value_info(n, t, v.shape) for n, v, t in zip(node.input, inputs, kinds, strict=False)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return Case("a_case", node.op_type, 17, is_float32, model, tuple(inputs), tuple(outputs), 1e-3, 1e-7)


def relu(answer):
    x = np.float32([[-1, 2]])
    return case(helper.make_node("Relu", ["x"], ["y"], "n"), [x], [answer])


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (np.float32([[0, 2]]), Outcome.PASSED),
        (np.float32([[0, 2.1]]), Outcome.WRONG),
        (np.float32([0, 2]), Outcome.WRONG),
        (np.float64([[0, 2]]), Outcome.WRONG),
    ],
    ids=["right", "another number", "another shape", "another type"],
)
def test_an_answer_is_right_in_numbers_shape_and_type(answer, outcome, tmp_path):
    assert run_case(relu(answer), tmp_path / "case.onnx").outcome == outcome


@pytest.mark.parametrize(("answer", "outcome"), [(2.003, Outcome.PASSED), (2.005, Outcome.WRONG)])
def test_in_float16_two_units_in_the_last_place_are_granted(answer, outcome, tmp_path):
    half = onnx.TensorProto.FLOAT16
    one = case(helper.make_node("Relu", ["x"], ["y"], "n"), [np.float16([2])], [np.float16([answer])], [half])
    one.model.graph.output[0].type.tensor_type.elem_type = half
    assert run_case(one, tmp_path / "case.onnx").outcome == outcome


def test_a_crash_is_a_wrong_answer(monkeypatch, tmp_path):
    def crash(path, threads):
        raise KeyError("x")

    monkeypatch.setattr(node_cases, "Session", crash)
    verdict = run_case(relu(np.float32([[0, 2]])), tmp_path / "case.onnx")
    assert (verdict.outcome, verdict.reason) == (Outcome.WRONG, "KeyError: 'x'")


def reshape(answer):
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], "n")
    return case(node, [np.float32([[1, 2]]), np.int64([2, 1])], [answer], [FLOAT, INT64])


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(np.float32([[1], [2]]), Outcome.PASSED), (np.float32([[2], [1]]), Outcome.WRONG)],
    ids=["right", "wrong"],
)
def test_values_that_decide_a_shape_are_fed(answer, outcome, tmp_path):
    assert run_case(reshape(answer), tmp_path / "case.onnx").outcome == outcome


def test_what_is_refused_has_a_reason(tmp_path):
    node = helper.make_node("Det", ["x"], ["y"], "n")
    verdict = run_case(case(node, [np.eye(2, dtype=np.float32)], [np.float32(1)]), tmp_path / "case.onnx")
    assert verdict.outcome == Outcome.REFUSED
    assert "Det node 'n' uses an operator the engine does not have" in verdict.reason


def verdict(operator, outcome, reason="", is_float32=True):
    return Verdict(replace(relu(np.float32([[0, 2]])), operator=operator, is_float32=is_float32), outcome, reason)


def rows(page):
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)}


def test_the_page_counts_every_outcome_in_its_column():
    page = write_operators_page.page(
        [
            verdict("Add", Outcome.PASSED),
            verdict("Add", Outcome.PASSED),
            verdict("Add", Outcome.REFUSED, "Add node 'y' computes in float32, but its input 2 is int8."),
            verdict("Add", Outcome.REFUSED, "a/b.onnx cannot be loaded: Add node 'y' is odd; fix it."),
            verdict("Add", Outcome.WRONG, "1 of 2 elements differ"),
            verdict("Add", Outcome.REFUSED, "no reason is told for these.", is_float32=False),
            verdict("Add", Outcome.WRONG, is_float32=False),
            verdict("NoSuchOperator", Outcome.REFUSED, "x NoSuchOperator node 'y' uses an operator."),
        ]
    )
    table = rows(page)
    why = "computes int8 (1), is odd (1)"
    assert table["Add"] == ["17", "5", "2", "2", "1", "2", "0", "1", "1", why]
    assert table["Relu"] == ["", *["0"] * 8, ""]
    assert table["**all of them**"] == ["17", "5", "2", "2", "1", "2", "0", "1", "1", ""]
    assert "NoSuchOperator (1)." in page
    assert "Of all 8 node cases of the standard, of all operators and types, 2 pass." in page


def test_the_script_fails_where_an_answer_is_wrong(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(write_operators_page, "_PAGE", tmp_path / "operators.md")
    for answer, status in (([[0, 2]], 0), ([[0, 3]], 1)):
        monkeypatch.setattr(write_operators_page, "load_cases", lambda answer=answer: [relu(np.float32(answer))])
        assert write_operators_page.main() == status
    assert "a_case: " in capsys.readouterr().err
    assert rows((tmp_path / "operators.md").read_text("utf-8"))["Relu"][1:5] == ["1", "0", "0", "1"]
