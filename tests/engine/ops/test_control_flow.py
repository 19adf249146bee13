"""If and Loop stand for the nodes of a body once shapes are known; judged by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes, run_engine
from onnx import TensorProto, helper, numpy_helper

from powerlab.domain.errors import PowerlabError

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
X = np.random.default_rng(5).standard_normal((2, 3, 4), dtype=np.float32)


def node(operator, inputs, outputs, name="", **attributes):
    return helper.make_node(operator, inputs, outputs, name or f"make {outputs[0]}", **attributes)


def typed(name, kind):
    """Return a tensor: of floats as large as the input, else one number."""
    return helper.make_tensor_value_info(name, kind, X.shape if kind == FLOAT else ())


def body(nodes, outputs, inputs=(), constants=None):
    """Return a graph; ``inputs`` and ``outputs`` are pairs of name and element type."""
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    sides = ([typed(*one) for one in side] for side in (inputs, outputs))
    return helper.make_graph(list(nodes), "body", *sides, values)


def branch(operator, output="made", constants=None, more=()):
    return body([node(operator, ["x", *more], [output])], [(output, FLOAT)], constants=constants)


def if_rank(rank, outputs=("y",), then=None, otherwise=None):
    """Return nodes that take the branch ``then`` where the input has ``rank`` axes."""
    return [
        node("Shape", ["x"], ["shape"]),
        node("Size", ["shape"], ["axes"]),
        node("Equal", ["axes", "rank"], ["decision"]),
        node("If", ["decision"], list(outputs), "choose", then_branch=then, else_branch=otherwise),
    ], {"rank": np.asarray(rank, np.int64)}


@pytest.mark.parametrize("rank", [3, 4])
def test_a_branch_is_chosen_by_the_shape(rank):
    nodes, constants = if_rank(rank, then=branch("Relu"), otherwise=branch("Neg"))
    data = model_bytes(nodes, {"x": X}, constants=constants)
    found = check_by_ort(data, {"x": X})
    np.testing.assert_array_equal(found["y"], np.maximum(X, 0) if rank == 3 else -X)
    assert {"If"}.isdisjoint(one.op_type for one in load_bytes(data).nodes)


def test_both_branches_may_use_the_names_of_the_other_and_constants_of_their_own():
    scale = {"c": np.float32(3)}
    nodes, constants = if_rank(
        3, then=branch("Mul", constants=scale, more=["c"]), otherwise=branch("Add", constants=scale, more=["c"])
    )
    nodes += [node("Identity", ["y"], ["made"]), node("Add", ["made", "c"], ["z"])]
    data = model_bytes(nodes, {"x": X}, ("y", "z"), constants={**constants, "c": np.float32(10)})
    found = load_and_run(data)
    np.testing.assert_allclose(found["y"], 3 * X, rtol=1e-6)
    np.testing.assert_allclose(found["z"], 3 * X + 10, rtol=1e-6)


def load_and_run(data, inputs=None):
    return run_engine(data, inputs or {"x": X})


def test_a_branch_within_a_branch_reads_what_lies_around_both():
    inner = body([node("Add", ["around", "outer"], ["sum"])], [("sum", FLOAT)])
    then = body(
        [
            node("Mul", ["x", "x"], ["around"]),
            node("If", ["decision"], ["made"], "inner", then_branch=inner, else_branch=branch("Relu")),
        ],
        [("made", FLOAT)],
    )
    nodes, constants = if_rank(3, then=then, otherwise=branch("Neg"))
    nodes.insert(0, node("Exp", ["x"], ["outer"]))
    check_by_ort(model_bytes(nodes, {"x": X}, constants=constants), {"x": X})


def test_a_branch_may_hand_on_what_it_did_not_make():
    nodes, constants = if_rank(3, then=body([], [("x", FLOAT)]), otherwise=branch("Neg"))
    found = load_and_run(model_bytes(nodes, {"x": X}, constants=constants))
    np.testing.assert_array_equal(found["y"], X)


def loop(rounds, nodes, carried, gathered=(), *, condition="", constants=None, outputs=None):
    """Return a Loop node; ``carried`` maps names of the body's inputs to (what they start as, the body's output)."""
    inputs = [("round", INT64), ("going", BOOL), *((name, FLOAT) for name in carried)]
    results = [("goes", BOOL), *((made, FLOAT) for _, made in carried.values()), *((name, FLOAT) for name in gathered)]
    starts = [start for start, _ in carried.values()]
    outputs = outputs or [f"y{index}" for index in range(len(carried) + len(gathered))]
    inside = [*nodes, *([] if any("goes" in one.output for one in nodes) else [node("Identity", ["going"], ["goes"])])]
    return node("Loop", [rounds, condition, *starts], outputs, "again", body=body(inside, results, inputs, constants))


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_a_loop_of_so_many_rounds_carries_and_gathers(rounds):
    steps = [
        node("Cast", ["round"], ["number"], to=FLOAT),
        node("Mul", ["state", "w"], ["next"]),
        node("Add", ["next", "number"], ["row"]),
    ]
    nodes = [loop("n", steps, {"state": ("x", "next")}, ["row"], constants={"w": np.float32(0.5)})]
    data = model_bytes(nodes, {"x": X}, ("y0", "y1"), constants={"n": np.asarray(rounds, np.int64)})
    found = check_by_ort(data, {"x": X})
    assert found["y1"].shape == (rounds, *X.shape)
    graph = load_bytes(data)
    assert sum(value.size == 1 and value.dtype == np.float32 for value in graph.constants.values()) == 1


def test_rows_that_are_gathered_take_no_name_that_is_there():
    nodes = [loop("n", [node("Neg", ["state"], ["next"])], {"state": ("y1/0", "next")}, ["next"])]
    nodes = [node("Exp", ["x"], ["y1/0"]), *nodes, node("Add", ["y1/0", "y0"], ["sum"])]
    data = model_bytes(nodes, {"x": X}, ("y0", "y1", "sum"), constants={"n": np.asarray(2, np.int64)})
    check_by_ort(data, {"x": X})


def test_a_loop_of_no_rounds_hands_on_what_it_got():
    nodes = [loop("n", [node("Neg", ["state"], ["next"])], {"state": ("x", "next")}, outputs=["y"])]
    found = load_and_run(model_bytes(nodes, {"x": X}, constants={"n": np.asarray(0, np.int64)}))
    np.testing.assert_array_equal(found["y"], X)


def test_a_loop_ends_when_its_condition_is_false():
    steps = [node("Add", ["state", "state"], ["next"]), node("Less", ["round", "limit"], ["goes"])]
    nodes = [loop("", steps, {"state": ("x", "next")}, condition="begin", outputs=["y"])]
    constants = {"begin": np.asarray(True), "limit": np.asarray(3, np.int64)}
    found = check_by_ort(model_bytes(nodes, {"x": X}, constants=constants), {"x": X})
    np.testing.assert_array_equal(found["y"], X * 2**4)


def test_a_loop_within_a_loop():
    inner = loop("n", [node("Add", ["deep", "x"], ["deeper"])], {"deep": ("state", "deeper")}, outputs=["next"])
    nodes = [loop("n", [inner], {"state": ("x", "next")}, ["next"])]
    data = model_bytes(nodes, {"x": X}, ("y0", "y1"), constants={"n": np.asarray(3, np.int64)})
    found = check_by_ort(data, {"x": X})
    np.testing.assert_allclose(found["y0"], 10 * X, rtol=1e-6)


def test_nodes_of_a_body_may_stand_in_any_order():
    steps = [node("Relu", ["between"], ["next"]), node("Neg", ["state"], ["between"])]
    nodes = [loop("n", steps, {"state": ("x", "next")}, outputs=["y"])]
    found = load_and_run(model_bytes(nodes, {"x": X}, constants={"n": np.asarray(1, np.int64)}))
    np.testing.assert_array_equal(found["y"], np.maximum(-X, 0))


STEP = [node("Neg", ["state"], ["next"])]
CARRIED = {"state": ("x", "next")}
ONE, TRUE = np.asarray(1, np.int64), np.asarray(True)


def decided_by_an_input():
    decision = node("If", ["b"], ["y"], "choose", then_branch=branch("Relu"), else_branch=branch("Neg"))
    return model_bytes([decision], {"x": X, "b": TRUE})


def an_if(**attributes):
    return model_bytes([node("If", ["b"], ["y"], "choose", **attributes)], {"x": X}, constants={"b": TRUE})


def a_loop(rounds=ONE, steps=STEP, carried=CARRIED, gathered=(), **options):
    made = loop("n", steps, carried, gathered, **options)
    return model_bytes([made], {"x": X}, tuple(made.output), constants={"n": rounds, "b": TRUE})


def short_branch():
    return body([], [])


REFUSED = {
    "an input decides": (decided_by_an_input, "If node 'choose' decides by a value that only a run gives"),
    "no branch": (lambda: an_if(else_branch=branch("Neg")), "lacks its graph then_branch"),
    "branch is a number": (lambda: an_if(then_branch=1, else_branch=2), "lacks its graph then_branch"),
    "branch makes less": (lambda: an_if(then_branch=short_branch(), else_branch=branch("Neg")), "its branch makes 0"),
    "decision is no truth value": (
        lambda: model_bytes(
            [node("If", ["n"], ["y"], "choose", then_branch=branch("Relu"), else_branch=branch("Neg"))],
            {"x": X},
            constants={"n": ONE},
        ),
        "needs one truth value as input 1, but it has int64",
    ),
    "reads what is nowhere": (
        lambda: an_if(then_branch=body([node("Relu", ["gone"], ["z"])], [("z", FLOAT)]), else_branch=branch("Neg")),
        "If node 'choose' reads the tensor 'gone', which nothing makes",
    ),
    "body makes a name twice": (
        lambda: an_if(
            then_branch=body([node("Relu", ["x"], ["z"]), node("Neg", ["x"], ["z"])], [("z", FLOAT)]),
            else_branch=branch("Neg"),
        ),
        "makes the tensor 'z', which is already there",
    ),
    "cycle in a body": (
        lambda: an_if(
            then_branch=body([node("Relu", ["b2"], ["z"]), node("Neg", ["z"], ["b2"])], [("z", FLOAT)]),
            else_branch=branch("Neg"),
        ),
        "its own output",
    ),
    "no operator in a body": (
        lambda: a_loop(steps=[node("Magic", ["state"], ["next"])]),
        "Magic node 'again/0/make next' uses an operator the engine does not have",
    ),
    "as many rounds as it takes": (lambda: a_loop(np.asarray(2**62, np.int64)), "makes more than 16384 nodes"),
    "for ever": (
        lambda: a_loop(steps=STEP, condition="b", rounds=np.asarray(2**62, np.int64)),
        "makes more than 16384 nodes",
    ),
    "neither rounds nor condition": (
        lambda: model_bytes([loop("", STEP, CARRIED, outputs=["y"])], {"x": X}),
        "neither a number of rounds nor a condition",
    ),
    "rounds of two": (lambda: a_loop(np.asarray([1, 2], np.int64)), "needs one number of rounds, but it has 2"),
    "gathers nothing": (lambda: a_loop(np.asarray(0, np.int64), gathered=["next"]), "gathers what rounds make"),
    "outputs do not fit": (lambda: a_loop(outputs=["y0", "y1"]), "carries 1 tensors and makes 2"),
    "rounds are computed": (
        lambda: model_bytes([loop("n", STEP, CARRIED, outputs=["y"])], {"x": X, "n": ONE}),
        "learns its number of rounds only in a run",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_resolved_is_refused_with_the_node(name):
    make, sentence = REFUSED[name]
    with pytest.raises(PowerlabError, match=sentence) as error:
        load_bytes(make())
    assert str(error.value).endswith(".")
