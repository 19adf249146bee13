"""Loops of many rounds that are alike: the body is planned once, and the answers are ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import relative_error, run_ort
from onnx import TensorProto, helper, numpy_helper

from powerlab.cli.commands.models.file_check import check_model_file
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.ir import shapes
from powerlab.engine.staged import loops, parts

RNG = np.random.default_rng(1)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH = 5
W, U = (RNG.standard_normal((WIDTH, WIDTH), dtype=np.float32) / 3 for _ in range(2))


def info(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def saved(folder, nodes, inputs, outputs, constants=None):
    graph = helper.make_graph(
        nodes,
        "test",
        inputs,
        [info(one) if isinstance(one, str) else one for one in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def check(session, path, inputs):
    found, expected = session.run(inputs), run_ort(path.read_bytes(), inputs)
    assert relative_error(found, expected) < 1e-5
    assert {name: (value.shape, value.dtype) for name, value in found.items()} == {
        name: (value.shape, value.dtype) for name, value in expected.items()
    }


@pytest.fixture
def planned(monkeypatch):
    """What was planned, once for each plan made."""
    made = []

    class Counting(parts.PlannedGraph):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(parts, "PlannedGraph", Counting)
    return made


def cell(*more, goes_on="before"):
    """Return a body of h ← tanh(x[round] W + h U); U is a state, too, and each h and each count are gathered."""
    nodes = [
        helper.make_node("Gather", ["x", "round"], ["row"], axis=0),
        helper.make_node("MatMul", ["row", "w"], ["a"]),
        helper.make_node("Gemm", ["h", "u", "a"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
        helper.make_node("Add", ["count", "one"], ["counted"]),
        helper.make_node("Identity", ["u"], ["same"]),
        helper.make_node("Identity", ["next"], ["kept"]),
        *more,
        helper.make_node("Identity", [goes_on], ["goes_on"]),
    ]
    inputs = [info("round", INT, []), info("before", BOOL, []), info("h"), info("u"), info("count", INT, [])]
    outputs = [
        info("goes_on", BOOL, []),
        info("next"),
        info("same"),
        info("counted", INT, []),
        info("kept", FLOAT, [2, WIDTH]),
    ]
    return helper.make_graph(nodes, "body", inputs, [*outputs, info("counted", INT, [])])


def recurrent(folder, rounds, body=None, *, length="T", rows=2):
    """Return a model with the loop; ``rounds`` is a number, or the name of an input."""
    constants = {"w": W, "uu": U, "one": np.int64(1), "none": np.int64(0), "yes": np.array(True)}
    inputs = [info("x", FLOAT, [length, rows, WIDTH]), info("h0", FLOAT, [rows, WIDTH])]
    if isinstance(rounds, int):
        constants["rounds"] = np.int64(rounds)
    else:
        inputs.append(info("rounds", INT, []))
    made = ["last", "u", "counted", "all", "counts"]
    nodes = [
        helper.make_node("Loop", ["rounds", "yes", "h0", "uu", "none"], made, body=body or cell()),
        helper.make_node("Relu", ["all"], ["y"]),
    ]
    outputs = ["last", "u", info("counted", INT, []), "y", info("counts", INT)]
    return saved(folder, nodes, inputs, outputs, constants)


def sequence(length, rounds=None, rows=2):
    x, h = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((length, rows, WIDTH), (rows, WIDTH)))
    return {"x": x, "h0": h} | ({} if rounds is None else {"rounds": np.array(rounds)})


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_loop_is_planned_once_and_run_in_rounds(tmp_path, planned, threads):
    path = recurrent(tmp_path, 900)
    session = Session(path, threads=threads, shapes={"x": (900, 2, WIDTH)})
    for _ in range(3):
        check(session, path, sequence(900))
        session.poison()
    assert len(planned) == 2  # the body, and what reads the result
    kernels = [kernel for kernel, _, _ in session.profile(sequence(900))]
    assert "rounds" in kernels


def test_a_short_loop_stands_unrolled_in_one_plan(tmp_path, planned):
    path = recurrent(tmp_path, 9)
    session = Session(path, threads=1, shapes={"x": (9, 2, WIDTH)})
    check(session, path, sequence(9))
    assert session.steps()
    assert not planned


def test_weights_that_no_round_changes_are_packed_once(tmp_path, planned):
    path = recurrent(tmp_path, 900)
    session = Session(path, threads=1, shapes={"x": (900, 2, WIDTH)})
    session.run(sequence(900))
    body = [kernel for kernel, _ in planned[0].steps()]
    assert not any(kernel.startswith("pack") for kernel in body)


@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
def test_the_number_of_rounds_is_fed(tmp_path, planned, rounds):
    path = recurrent(tmp_path, "rounds")
    session = Session(path, threads=1)
    check(session, path, sequence(7, rounds))
    bodies = len(planned)
    check(session, path, sequence(7, rounds))
    assert len(planned) == bodies


def test_rounds_end_when_the_body_says_so(tmp_path, planned):
    nodes = [
        helper.make_node("ReduceMax", ["next"], ["largest"], keepdims=0),
        helper.make_node("Less", ["largest", "limit"], ["small"]),
    ]
    path = recurrent(tmp_path, "rounds", cell(*nodes, goes_on="small"))
    model = onnx.load(path)
    model.graph.input.append(info("limit", FLOAT, []))
    onnx.save(model, path)
    session = Session(path, threads=1)
    for limit in (2.0, -2.0, 0.8, 0.9):
        check(session, path, {**sequence(30, 30), "limit": np.array(limit, np.float32)})
    assert len(planned) <= 2 + 3  # the body once; what reads the result for each number of rounds


@pytest.mark.parametrize("unrolled", [0, 10**6])
def test_without_a_condition_to_begin_with_the_body_ends_nothing(tmp_path, monkeypatch, unrolled):
    monkeypatch.setattr(shapes, "MOST_UNROLLED", unrolled)
    body = helper.make_graph(
        [helper.make_node("Mul", ["h", "h"], ["next"]), helper.make_node("Less", ["round", "one"], ["goes_on"])],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("h")],
        [info("goes_on", BOOL, []), info("next")],
    )
    nodes = [helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)]
    constants = {"rounds": np.int64(5), "one": np.int64(1)}
    path = saved(tmp_path, nodes, [info("x", FLOAT, [2])], ["y"], constants)
    found = Session(path, threads=1).run({"x": np.float32([1.1, 0.9])})  # ONNX Runtime ends, against the standard
    np.testing.assert_allclose(found["y"], np.float32([1.1, 0.9]) ** 32, rtol=1e-4)


def test_more_rounds_than_are_run_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(loops, "_AT_ONCE", 7)
    path = recurrent(tmp_path, "rounds")
    session = Session(path, threads=1)
    for rounds in (6, 7, 8, 14, 15):
        check(session, path, sequence(15, rounds))


def test_much_that_is_gathered_is_made_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(loops, "_ROOM_ELEMENTS", 25)
    path = recurrent(tmp_path, "rounds")
    check(Session(path, threads=1), path, sequence(15, 15))


def test_a_loop_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(loops, "MOST_ROUNDS", 50)
    body = helper.make_graph(
        [helper.make_node("Mul", ["h", "h"], ["next"]), helper.make_node("Identity", ["before"], ["goes_on"])],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("h")],
        [info("goes_on", BOOL, []), info("next")],
    )
    nodes = [helper.make_node("Loop", ["", "begins", "x"], ["y"], name="forever", body=body)]
    path = saved(tmp_path, nodes, [info("x", FLOAT, [2]), info("begins", BOOL, [])], ["y"])
    session = Session(path, threads=1)
    with pytest.raises(PowerlabError, match="'forever' goes on for more than 50 rounds"):
        session.run({"x": np.ones(2, np.float32), "begins": np.array(True)})
    found = session.run({"x": np.ones(2, np.float32), "begins": np.array(False)})
    np.testing.assert_array_equal(found["y"], np.ones(2, np.float32))


def test_states_may_change_places(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("Add", ["a", "step"], ["sum"]),
            helper.make_node("Identity", ["b"], ["first"]),
            helper.make_node("Identity", ["before"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("a", FLOAT, [3]), info("b", FLOAT, [3])],
        [info("goes_on", BOOL, []), info("first"), info("sum"), info("a", FLOAT, [3])],
    )
    nodes = [helper.make_node("Loop", ["rounds", "", "p", "q"], ["y", "z", "all"], body=body)]
    inputs = [info("p", FLOAT, [3]), info("q", FLOAT, [3]), info("rounds", INT, [])]
    path = saved(tmp_path, nodes, inputs, ["y", "z", "all"], {"step": np.float32([1, 2, 3])})
    session = Session(path, threads=1)
    p, q = np.float32([10, 20, 30]), np.float32([-1, -2, -3])
    for rounds in (0, 1, 4, 5):
        check(session, path, {"p": p, "q": q, "rounds": np.array(rounds)})


def test_states_that_grow_are_unrolled(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["h", "x"], ["next"], axis=0),
            helper.make_node("Identity", ["before"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("h")],
        [info("goes_on", BOOL, []), info("next")],
    )
    nodes = [helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)]
    path = saved(tmp_path, nodes, [info("x", FLOAT, [2, 3]), info("rounds", INT, [])], ["y"])
    session = Session(path, threads=1)
    for rounds in (3, 1):
        check(session, path, {"x": RNG.standard_normal((2, 3), dtype=np.float32), "rounds": np.array(rounds)})


def test_rounds_with_values_that_a_kernel_must_know_are_unrolled(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("BatchNormalization", ["x", "h", "h", "h", "ones"], ["y"]),
            helper.make_node("ReduceMean", ["y"], ["mean"], axes=[0, 2], keepdims=0),
            helper.make_node("Add", ["mean", "h"], ["next"]),
            helper.make_node("Identity", ["before"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("h", FLOAT, [3])],
        [info("goes_on", BOOL, []), info("next", FLOAT, [3])],
    )
    nodes = [
        helper.make_node("Loop", ["rounds", "", "h0"], ["last"], body=body),
        helper.make_node("Abs", ["last"], ["z"]),
    ]
    inputs = [info("x", FLOAT, [2, 3, 4]), info("h0", FLOAT, [3]), info("rounds", INT, [])]
    path = saved(tmp_path, nodes, inputs, ["z"], {"ones": np.ones(3, np.float32)})
    session = Session(path, threads=1)
    for rounds in (3, 2, 3):
        x, h = RNG.standard_normal((2, 3, 4), dtype=np.float32), RNG.random(3, np.float32)
        check(session, path, {"x": x, "h0": h, "rounds": np.array(rounds)})
    assert "rounds" not in [kernel for kernel, _, _ in session.profile({"x": x, "h0": h, "rounds": np.array(2)})]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("backwards", [[0, 0], [1, 0], [1, 1]])
def test_a_long_scan_is_run_in_rounds(tmp_path, axis, backwards):
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "half"], ["less"]),
            helper.make_node("Add", ["less", "element"], ["next"]),
            helper.make_node("Mul", ["next", "next"], ["row"]),
        ],
        "body",
        [info("state"), info("element")],
        [info("next"), info("row")],
        [numpy_helper.from_array(np.float32(0.5), "half")],
    )
    settings = {"scan_input_axes": [axis], "scan_output_axes": [axis]}
    settings |= {"scan_input_directions": backwards[:1], "scan_output_directions": backwards[1:]}
    nodes = [helper.make_node("Scan", ["start", "x"], ["y", "rows"], body=body, num_scan_inputs=1, **settings)]
    shape = [300, 3] if axis == 0 else [3, 300]
    path = saved(tmp_path, nodes, [info("start", FLOAT, [3]), info("x", FLOAT, shape)], ["y", "rows"])
    session = Session(path, threads=2)
    inputs = {"start": np.float32([1, 2, 3]), "x": RNG.standard_normal(shape, dtype=np.float32)}
    check(session, path, inputs)
    assert "rounds" in [kernel for kernel, _, _ in session.profile(inputs)]


def test_a_fault_in_a_round_names_its_node(tmp_path):
    path = recurrent(tmp_path, "rounds")
    session = Session(path, threads=1)
    with pytest.raises(PowerlabError, match="row"):
        session.run(sequence(5, 6))
    check(session, path, sequence(5, 5))


def test_a_model_of_very_many_rounds_runs_and_may_be_uploaded(tmp_path):
    path = recurrent(tmp_path, 6000, length=6000, rows=1)
    assert check_model_file(path) is None
    check(Session(path, threads=2), path, sequence(6000, rows=1))
    with pytest.raises(PowerlabError, match="makes more than 16384 nodes"):
        Session(path, threads=1, precision="int8w")


def test_weights_of_few_bits_have_all_rounds_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setattr(shapes, "MOST_UNROLLED", 10)
    path = recurrent(tmp_path, 9)
    asked = {"threads": 2, "shapes": {"x": (9, 2, WIDTH)}}
    inputs = sequence(9)
    expected = Session(path, **asked).run(inputs)
    found = Session(path, **asked, precision="fp16w").run(inputs)
    assert 0 < relative_error(found, expected) < 1e-2
