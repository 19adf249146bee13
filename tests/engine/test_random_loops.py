"""Loops of random bodies: run round after round they make what they make side by side, and with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import relative_error, run_ort
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from powerlab.engine import Session
from powerlab.engine.ir import shapes

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WIDTH, ROWS = 3, 6
UNARY, BINARY = ("Tanh", "Neg", "Identity", "Abs"), ("Add", "Sub", "Mul", "Max")
RNG = np.random.default_rng(3)
CONSTANTS = {
    "k": RNG.standard_normal(WIDTH, dtype=np.float32),
    "w": RNG.standard_normal((WIDTH, WIDTH), dtype=np.float32) / 2,
    "one": np.int64(1),
    "yes": np.array(True),
}
INPUTS = {
    "x": RNG.standard_normal((ROWS, WIDTH), dtype=np.float32),
    **{f"s{i}": RNG.standard_normal(WIDTH, dtype=np.float32) for i in range(3)},
    "count": np.array(2),
}


def info(name, kind=FLOAT, shape=(WIDTH,)):
    return helper.make_tensor_value_info(name, kind, shape)


@st.composite
def loops(draw):
    """Return a model, and how many states and gathered results of floats it has."""
    states = draw(st.integers(1, 3))
    vectors = [*(f"h{i}" for i in range(states)), "k"]
    nodes = [
        helper.make_node("Gather", ["x", "round"], ["row"], axis=0),
        helper.make_node("Add", ["count_in", "one"], ["count_next"]),
    ]
    vectors.append("row")
    for number in range(draw(st.integers(0, 7))):
        name, kind = f"v{number}", draw(st.sampled_from(["unary", "binary", "product"]))
        one, other = draw(st.sampled_from(vectors)), draw(st.sampled_from(vectors))
        if kind == "unary":
            nodes.append(helper.make_node(draw(st.sampled_from(UNARY)), [one], [name]))
        elif kind == "binary":
            nodes.append(helper.make_node(draw(st.sampled_from(BINARY)), [one, other], [name]))
        else:
            nodes.append(helper.make_node("MatMul", [one, "w"], [name]))
        vectors.append(name)
    limit = draw(st.integers(1, ROWS + 1))
    nodes.append(helper.make_node("Less", ["round", "limit"], ["small"]))
    goes_on = draw(st.sampled_from(["before", "small"]))
    nodes.append(helper.make_node("Identity", [goes_on], ["goes_on"]))
    begins = "yes" if goes_on == "small" else draw(st.sampled_from(["yes", ""]))
    chosen = draw(st.lists(st.sampled_from(vectors), min_size=states, max_size=states + 2))
    results = [f"r{index}" for index in range(len(chosen))]
    direct = [draw(st.booleans()) and name not in ("k", *results[:at], *chosen[:at]) for at, name in enumerate(chosen)]
    nodes += [
        helper.make_node("Identity", [name], [result])
        for name, result, plain in zip(chosen, results, direct, strict=True)
        if not plain
    ]
    made = [name if plain else result for name, result, plain in zip(chosen, results, direct, strict=True)]
    body = helper.make_graph(
        nodes,
        "body",
        [info("round", INT, []), info("before", BOOL, []), *map(info, vectors[:states]), info("count_in", INT, [])],
        [
            info("goes_on", BOOL, []),
            *map(info, made[:states]),
            info("count_next", INT, []),
            *map(info, made[states:]),
        ],
    )
    outputs = [*(f"y{i}" for i in range(states)), "counted", *(f"all{i}" for i in range(len(made) - states))]
    carried = [*(f"s{i}" for i in range(states)), "count"]
    graph = helper.make_graph(
        [helper.make_node("Loop", ["rounds", begins, *carried], outputs, body=body)],
        "test",
        [info("x", FLOAT, (ROWS, WIDTH)), *map(info, carried[:-1]), info("count", INT, [])],
        [
            *map(info, outputs[:states]),
            info("counted", INT, []),
            *(info(name, FLOAT, ["n", WIDTH]) for name in outputs[states + 1 :]),
        ],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in {
                **CONSTANTS,
                "limit": np.int64(limit),
                "rounds": np.int64(draw(st.integers(1, ROWS))),
            }.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@settings(max_examples=60, deadline=None)
@given(data=loops())
def test_any_loop_makes_the_same_in_rounds_and_side_by_side(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("loop") / "model.onnx"
    path.write_bytes(data)
    expected = run_ort(data, {one.name: INPUTS[one.name] for one in onnx.load_from_string(data).graph.input})
    for unrolled in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shapes, "MOST_UNROLLED", unrolled)
            session = Session(path, threads=2)
            for _ in range(2):
                found = session.run({name: INPUTS[name] for name in session.inputs})
                assert relative_error(found, expected) < 1e-5
                session.poison()
