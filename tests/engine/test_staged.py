"""Models whose shapes only a run tells: answers are ONNX Runtime's, and what was planned once is not planned again."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from engine_models import relative_error, run_ort
from onnx import TensorProto, helper, numpy_helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.onnx_reader.file import DataFile
from powerlab.engine.ir import shapes
from powerlab.engine.ir.constants import Recipe, derived, origin
from powerlab.engine.staged import model as staged
from powerlab.engine.staged import parts

RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal((8, 3, 3, 3), dtype=np.float32)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def saved(folder, nodes, inputs, outputs=("y",), constants=None):
    graph = helper.make_graph(
        nodes,
        "test",
        inputs,
        [one if not isinstance(one, str) else info(one) for one in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def check(session, path, inputs):
    found, expected = session.run(inputs), run_ort(path.read_bytes(), inputs)
    assert relative_error(found, expected) < 1e-5
    assert {name: value.dtype for name, value in found.items()} == {n: v.dtype for n, v in expected.items()}
    assert session.outputs == {name: value.shape for name, value in expected.items()}


@pytest.fixture
def planned(monkeypatch):
    """Names of what was planned, once for each plan made."""
    made = []

    class Counting(parts.PlannedGraph):
        def __init__(self, graph, *args, **options):
            super().__init__(graph, *args, **options)
            made.append([kernel for kernel, _ in self.steps()])

    monkeypatch.setattr(parts, "PlannedGraph", Counting)
    return made


def convolution(folder):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["a"], ["y"]),
    ]
    return saved(folder, nodes, [info("x", FLOAT, ["N", 3, "H", "W"])], constants={"w": WEIGHTS})


def image(*shape):
    return {"x": RNG.standard_normal(shape, dtype=np.float32)}


def test_open_sizes_are_those_of_each_run_and_planned_once(tmp_path, planned):
    path = convolution(tmp_path)
    session = Session(path, threads=2)
    assert session.inputs == {"x": (-1, 3, -1, -1)}
    for size in (8, 13, 8, 13, 8):
        check(session, path, image(2, 3, size, size + 1))
    assert len(planned) == 2


def test_plans_of_several_shapes_share_their_weights(tmp_path):
    session = Session(convolution(tmp_path), threads=1)
    weights = []
    for size in (16, 24):
        session.run(image(1, 3, size, size))
        weights.append([kept for stage in session._model._stages.values() for kept in stage.weights])
    assert len(weights[1]) == 2 * len(weights[0])
    assert len({id(kept.array) for kept in weights[1]}) < len(weights[1])


def test_weights_are_read_and_packed_for_the_first_shape_alone(tmp_path, monkeypatch):
    reads = []
    read = DataFile.read
    monkeypatch.setattr(DataFile, "read", lambda file, *args: (reads.append(args), read(file, *args))[1])
    weights = {"w": RNG.standard_normal((256, 192), dtype=np.float32)}
    path = saved(
        tmp_path, [helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", FLOAT, ["N", 256])], ["y"], weights
    )
    session = Session(path, threads=2)
    check(session, path, image(40, 256))
    first = len(reads)
    check(session, path, image(48, 256))
    assert 0 < first == len(reads)


def test_values_are_alike_where_they_are_made_alike_of_the_same():
    def read():
        return np.ones((2, 2), np.float32)

    weights, others = (Recipe(shape=(2, 2), dtype=np.dtype(np.float32), make=read) for _ in range(2))
    factors = np.float32([1, 2])

    def made(source, *arguments, **more):
        return origin(derived(source, (2, 2), partial(np.multiply, *arguments, **more)))

    assert made(weights, factors) == made(weights, factors.copy())
    assert made(weights, factors) != made(weights, factors + 1)
    assert made(weights, factors) != made(others, factors)
    assert made(weights, factors) != made(weights, factors, casting="unsafe")
    assert origin(derived(weights, (2, 2), lambda value: value)) != origin(
        derived(weights, (2, 2), lambda value: value)
    )


def test_plans_of_several_shapes_share_their_memory(tmp_path):
    path = convolution(tmp_path)
    session = Session(path, threads=2)
    for size in (24, 16, 24, 30, 16, 24):
        check(session, path, image(1, 3, size, size))
        session.poison()
    rooms = [stage.planned.room_floats() for stage in session._model._stages.values() if stage.planned is not None]
    assert len(rooms) == 3
    assert len(set(rooms)) == 2  # those of 24 and of 30; the one of 16 needs less


def test_only_the_latest_plans_are_kept(tmp_path, monkeypatch, planned):
    monkeypatch.setattr(staged, "MOST_STAGES", 2)
    session = Session(convolution(tmp_path), threads=1)
    for size in (8, 9, 10, 9, 8):
        session.run(image(1, 3, size, size))
        assert len(session._model._stages) <= 2
    assert len(planned) == 4  # 8 was forgotten


def test_what_does_not_fit_an_open_shape_is_told_with_what_is_open(tmp_path):
    session = Session(convolution(tmp_path), threads=1)
    with pytest.raises(PowerlabError, match=r"the model takes 'x' float32 \[any, 3, any, any\]"):
        session.run(image(1, 4, 8, 8))
    with pytest.raises(PowerlabError, match="so there is no plan of it to look at"):
        session.repeat(image(1, 3, 8, 8), 0, 1, 1)
    with pytest.raises(PowerlabError, match="leave the slices out"):
        Session(convolution(tmp_path), threads=2, slices=2)


def test_a_profile_has_the_steps_of_all_stages(tmp_path):
    path = resized_by_input(tmp_path)
    session = Session(path, threads=1)
    inputs = {"x": RNG.standard_normal((1, 2, 4, 4), dtype=np.float32), "sizes": np.array([1, 2, 8, 8])}
    profile = session.profile(inputs)
    assert [(kernel, node) for kernel, node, _ in profile] == session.steps()
    assert all(ns > 0 for *_, ns in profile)
    check(session, path, inputs)
    session.poison()
    check(session, path, inputs)


def resized_by_input(folder):
    nodes = [helper.make_node("Resize", ["x", "", "", "sizes"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    return saved(folder, nodes, [info("x", FLOAT, [1, 2, 4, 4]), info("sizes", INT, [4])])


def test_a_size_that_is_fed_may_be_another_in_each_run(tmp_path, planned):
    path = resized_by_input(tmp_path)
    session = Session(path, threads=1)
    for height, width in ((8, 8), (5, 9), (8, 8), (5, 9)):
        x = RNG.standard_normal((1, 2, 4, 4), dtype=np.float32)
        check(session, path, {"x": x, "sizes": np.array([1, 2, height, width])})
    assert len(planned) == 2


def test_a_shape_that_is_computed_from_values_is_told_by_the_stage_before(tmp_path):
    nodes = [
        helper.make_node("ArgMax", ["x"], ["place"], axis=0, keepdims=1),
        helper.make_node("Add", ["place", "one"], ["count"]),
        helper.make_node("Slice", ["z", "zero", "count", "zero"], ["part"]),
        helper.make_node("ReduceSum", ["part"], ["y"], keepdims=0),
    ]
    constants = {"one": np.array([1]), "zero": np.array([0])}
    path = saved(tmp_path, nodes, [info("x", FLOAT, [5]), info("z", FLOAT, [5, 2])], ["y", "part"], constants)
    session = Session(path, threads=1)
    for _ in range(6):
        check(session, path, {"x": RNG.random(5, np.float32), "z": RNG.random((5, 2), np.float32)})


def branch(operator, output):
    return helper.make_graph([helper.make_node(operator, ["x"], [output])], operator, [], [info(output)])


def test_a_branch_that_a_run_decides(tmp_path, planned):
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["a"], then_branch=branch("Sqrt", "t"), else_branch=branch("Neg", "e")),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    path = saved(tmp_path, nodes, [info("x", FLOAT, [3])], constants={"zero": np.float32(0)})
    session = Session(path, threads=1)
    for sign in (1, -1, 1, -1):
        check(session, path, {"x": np.float32([1, 2, 3]) * np.float32(sign)})
    assert len(planned) == 3  # before the decision, and one for each branch


@pytest.mark.parametrize("rounds", [1, 4, 0])
def test_a_loop_that_ends_when_its_body_says_so(tmp_path, rounds):
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("ReduceMax", ["next"], ["largest"], keepdims=0),
            helper.make_node("Less", ["largest", "limit"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("state", FLOAT, [2])],
        [info("goes_on", BOOL, []), info("next", FLOAT, [2])],
    )
    nodes = [helper.make_node("Loop", ["", "begins", "x"], ["y"], body=body)]
    inputs = [info("x", FLOAT, [2]), info("limit", FLOAT, []), info("begins", BOOL, [])]
    path = saved(tmp_path, nodes, inputs)
    session = Session(path, threads=1)
    values = {"x": np.float32([0.5, 1]), "limit": np.float32(rounds), "begins": np.array(rounds > 0)}
    check(session, path, {name: np.asarray(value) for name, value in values.items()})


def test_a_body_has_constants_of_its_own_in_every_round(tmp_path):
    body = helper.make_graph(
        [
            helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5))),
            helper.make_node("Exp", ["half"], ["grown"]),
            helper.make_node("Mul", ["grown", "factors"], ["added"]),
            helper.make_node("Add", ["state", "added"], ["next"]),
            helper.make_node("ReduceMax", ["next"], ["largest"], keepdims=0),
            helper.make_node("Less", ["largest", "limit"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("state", FLOAT, [2])],
        [info("goes_on", BOOL, []), info("next", FLOAT, [2]), info("added", FLOAT, [2])],
        [numpy_helper.from_array(np.float32([1, 2]), "factors")],
    )
    nodes = [helper.make_node("Loop", ["", "begins", "x"], ["y", "all"], body=body)]
    inputs = [info("x", FLOAT, [2]), info("limit", FLOAT, []), info("begins", BOOL, [])]
    path = saved(tmp_path, nodes, inputs, ["y", "all"])
    session = Session(path, threads=1)
    for limit in (5, 20):
        check(
            session, path, {"x": np.float32([0.5, 1]), "limit": np.array(limit, np.float32), "begins": np.array(True)}
        )


def pasting_loop(folder):
    """Return a loop that resizes each image to the size its box has, and puts all of them side by side."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["images", "round"], ["image"], axis=0),
            helper.make_node("Gather", ["boxes", "round"], ["box"], axis=0),
            helper.make_node("Slice", ["box", "two", "four"], ["ends"]),
            helper.make_node("Slice", ["box", "zero", "two"], ["begins"]),
            helper.make_node("Sub", ["ends", "begins"], ["size"]),
            helper.make_node("Concat", ["ones", "size"], ["sizes"], axis=0),
            helper.make_node("Resize", ["image", "", "", "sizes"], ["resized"], mode="linear"),
            helper.make_node("Reshape", ["resized", "flat"], ["row"]),
            helper.make_node("Concat", ["state", "row"], ["next"], axis=0),
            helper.make_node("Identity", ["before"], ["goes_on"]),
        ],
        "body",
        [info("round", INT, []), info("before", BOOL, []), info("state", FLOAT, ["L"])],
        [info("goes_on", BOOL, []), info("next", FLOAT, ["M"])],
    )
    nodes = [
        helper.make_node("Mul", ["corners", "scale"], ["scaled"]),
        helper.make_node("Cast", ["scaled"], ["boxes"], to=INT),
        helper.make_node("Loop", ["rounds", "", "none"], ["y"], body=body),
    ]
    constants = {
        "scale": np.float32(2),
        "zero": np.int64([0]),
        "two": np.int64([2]),
        "four": np.int64([4]),
        "ones": np.int64([1, 1]),
        "flat": np.int64([-1]),
        "none": np.zeros(0, np.float32),
    }
    inputs = [info("images", FLOAT, ["N", 1, 1, 5, 5]), info("corners", FLOAT, ["N", 4]), info("rounds", INT, [])]
    return saved(folder, nodes, inputs, constants=constants)


def boxes(count):
    first = RNG.integers(0, 4, (count, 2))
    corners = np.concatenate([first, first + RNG.integers(1, 5, (count, 2))], axis=1).astype(np.float32)
    images = RNG.standard_normal((count, 1, 1, 5, 5), dtype=np.float32)
    return {"images": images, "corners": corners, "rounds": np.array(count)}


def test_rounds_that_integers_decide_are_planned_together(tmp_path, planned):
    path = pasting_loop(tmp_path)
    session = Session(path, threads=2)
    check(session, path, boxes(12))
    assert len(planned) == 2  # what comes before the loop, and all rounds
    for count in (12, 3, 40):
        check(session, path, boxes(count))
    assert len(planned) == 2 + 3 + 2  # the boxes of another number are computed anew
    same = boxes(7)
    check(session, path, same)
    found = len(planned)
    check(session, path, same)
    assert len(planned) == found


def test_many_rounds_are_planned_in_several_stages(tmp_path, monkeypatch, planned):
    monkeypatch.setattr(shapes, "MOST_IN_ROUNDS", 20)
    path = pasting_loop(tmp_path)
    session = Session(path, threads=2)
    check(session, path, boxes(12))
    assert 4 < len(planned) < 13


@pytest.mark.parametrize("found", [0, 1, 7])
def test_as_many_rows_as_the_values_say(tmp_path, found):
    nodes = [
        helper.make_node("Greater", ["x", "half"], ["large"]),
        helper.make_node("NonZero", ["large"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("GatherND", ["x", "rows"], ["picked"]),
        helper.make_node("Relu", ["picked"], ["y"]),
    ]
    path = saved(tmp_path, nodes, [info("x", FLOAT, ["N", 4])], ["y", info("rows", INT)], {"half": np.float32(0.5)})
    session = Session(path, threads=1)
    x = np.zeros((9, 4), np.float32)
    x.reshape(-1)[RNG.permutation(x.size)[:found]] = 1.5
    check(session, path, {"x": x})


def test_weights_that_are_fed_or_computed_are_taken_as_they_come(tmp_path):
    shapes = {"w": (1, 12, 2), "r": (1, 12, 3)}
    nodes = [
        helper.make_node("Neg", ["w"], ["negative"]),
        helper.make_node("LSTM", ["x", "negative", "r"], ["y"], hidden_size=3),
    ]
    path = saved(tmp_path, nodes, [info("x", FLOAT, [4, 1, 2]), *(info(n, FLOAT, s) for n, s in shapes.items())])
    session = Session(path, threads=1)
    for _ in range(2):
        weights = {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
        check(session, path, {"x": RNG.standard_normal((4, 1, 2), dtype=np.float32), **weights})


def test_an_input_may_be_an_output_and_floats_keep_the_types_of_the_model(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    half = TensorProto.FLOAT16
    path = saved(
        tmp_path, nodes, [info("x", half, ["N"]), info("shape", INT, ["R"])], [info("y", half), info("x", half)]
    )
    session = Session(path, threads=1)
    for shape in ([2, 3], [3, 2, 1], [-1]):
        x = RNG.random(6).astype(np.float16)
        found = session.run({"x": x, "shape": np.array(shape)})
        np.testing.assert_array_equal(found["y"], x.reshape(shape))
        np.testing.assert_array_equal(found["x"], x)
        assert found["y"].dtype == np.float16


def test_the_batch_size_may_be_given_and_the_rest_be_told_by_a_run(tmp_path):
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "i"])]
    path = saved(tmp_path, nodes, [info("x", FLOAT, ["N", 6]), info("k", INT, [1])], ["y", info("i", INT)])
    session = Session(path, threads=1, batch_size=3)
    assert session.inputs == {"x": (3, 6), "k": (3,)} or session.inputs["x"] == (3, 6)
    session = Session(path, threads=1, shapes={"x": (3, 6)})
    check(session, path, {"x": RNG.random((3, 6), np.float32), "k": np.array([2])})


def test_a_run_that_cannot_be_is_one_sentence_and_the_next_may_be(tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    path = saved(tmp_path, nodes, [info("x", FLOAT, [6]), info("shape", INT, [2])])
    session = Session(path, threads=1)
    x = RNG.random(6, np.float32)
    with pytest.raises(PowerlabError, match=r"Reshape node 'y' .*\.$"):
        session.run({"x": x, "shape": np.array([4, 2])})
    check(session, path, {"x": x, "shape": np.array([3, 2])})


def test_an_output_that_nothing_makes_is_refused_before_a_run(tmp_path):
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["a"])], [info("x", FLOAT, ["N"])], ["y"])
    with pytest.raises(PowerlabError, match="promises the output 'y', which no node makes"):
        Session(path, threads=1)
