"""Matrix products of computed tensors: any ranks, broadcasting, transposes, factors, against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import model_bytes, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise

SHAPES = [
    ((3, 4), (4, 5)),
    ((1, 7), (7, 1)),
    ((197, 64), (64, 197)),
    ((2, 3, 33, 65), (2, 3, 65, 31)),
    ((5, 1, 7, 9), (1, 4, 9, 3)),
    ((7, 9), (2, 3, 9, 5)),
    ((2, 3, 9, 5), (5, 4)),
    ((4,), (4,)),
    ((4,), (3, 4, 2)),
    ((2, 3, 4), (4,)),
    ((2, 1, 3, 1, 4, 5), (1, 2, 1, 2, 5, 6)),
    ((13, 1030), (1030, 18)),
]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def close(found, expected, inner):
    """Hold a product against float64, by the size of its sums."""
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6 * np.sqrt(inner))


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_a_product_of_computed_tensors(left, right):
    a, b = normal(*left), normal(*right, seed=1)
    found = run_engine(node_bytes("MatMul", {"a": a, "b": b}), {"a": a, "b": b})["y"]
    close(found, a.astype(np.float64) @ b.astype(np.float64), left[-1])


@pytest.mark.parametrize("constant", ["a", "b"])
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_a_product_by_a_constant(left, right, constant):
    sides = {"a": normal(*left), "b": normal(*right, seed=1)}
    known = {constant: sides[constant]}
    inputs = {name: value for name, value in sides.items() if name != constant}
    data = node_bytes("MatMul", inputs, constants=known, order=["a", "b"])
    close(run_engine(data, inputs)["y"], sides["a"].astype(np.float64) @ sides["b"].astype(np.float64), left[-1])


@pytest.mark.parametrize("known", [(), ("b",), ("c",), ("b", "c"), ("a",)], ids=str)
@pytest.mark.parametrize("c_shape", [None, (), (1,), (6,), (1, 6), (5, 1), (5, 6)], ids=str)
@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_form_of_gemm(known, c_shape, transposed):
    a = normal(*((7, 5) if transposed[0] else (5, 7)))
    b = normal(*((6, 7) if transposed[1] else (7, 6)), seed=1)
    sides = {"a": a, "b": b} if c_shape is None else {"a": a, "b": b, "c": normal(*c_shape, seed=2)}
    inputs = {name: value for name, value in sides.items() if name not in known}
    constants = {name: value for name, value in sides.items() if name in known}
    data = node_bytes(
        "Gemm",
        inputs,
        constants=constants,
        order=list(sides),
        alpha=0.5,
        beta=2.0,
        transA=transposed[0],
        transB=transposed[1],
    )
    expected = 0.5 * (a.T if transposed[0] else a).astype(np.float64) @ (b.T if transposed[1] else b)
    close(run_engine(data, inputs)["y"], expected + 2.0 * sides.get("c", 0.0), 7)


@given(
    batches=st.lists(st.sampled_from([(1, 1), (2, 2), (3, 1), (1, 3)]), max_size=3),
    rows=st.integers(1, 20),
    inner=st.integers(1, 40),
    columns=st.integers(1, 70),
)
@settings(max_examples=30, deadline=None)
def test_random_products(batches, rows, inner, columns):
    a = normal(*(one for one, _ in batches), rows, inner)
    b = normal(*(other for _, other in batches), inner, columns, seed=1)
    found = run_engine(node_bytes("MatMul", {"a": a, "b": b}), {"a": a, "b": b})["y"]
    close(found, a.astype(np.float64) @ b.astype(np.float64), inner)


def test_a_transposed_side_is_read_where_it_lies():
    q, k = normal(1, 2, 9, 16), normal(1, 2, 11, 16, seed=1)
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["y"]),
    ]
    data = model_bytes(nodes, {"q": q, "k": k})
    assert [node.op_type for node in optimise(load_bytes(data)).nodes] == ["Product"]
    close(run_engine(data, {"q": q, "k": k})["y"], q.astype(np.float64) @ k.transpose(0, 1, 3, 2), 16)


def test_results_are_the_same_bits_on_any_number_of_threads():
    a, b = normal(3, 50, 700), normal(3, 700, 100, seed=1)
    data = node_bytes("MatMul", {"a": a, "b": b})
    graph = optimise(load_bytes(data))
    alone, *others = (Session(graph, threads=threads).run({"a": a, "b": b})["y"] for threads in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(alone, other)


@pytest.mark.parametrize(("left", "right"), [((3, 4), (5, 6)), ((2, 3, 4), (3, 4, 5)), ((), (3,))], ids=str)
def test_what_does_not_fit_is_refused_with_its_node(left, right):
    with pytest.raises(PowerlabError, match="MatMul node 'n'"):
        load_bytes(node_bytes("MatMul", {"a": np.zeros(left, np.float32), "b": np.zeros(right, np.float32)}))


def test_not_a_number_passes_through():
    a, b = normal(4, 5), normal(5, 3, seed=1)
    a[2, 3] = np.nan
    found = run_engine(node_bytes("MatMul", {"a": a, "b": b}), {"a": a, "b": b})["y"]
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[[0, 1, 3]]).all()


@pytest.mark.parametrize("readers", [1, 2])
def test_few_rows_meet_many_weights_of_a_run(readers):
    """Weights that are inputs are turned round for one reader, and packed once for several."""
    a, b = normal(5, 70), normal(203, 70, seed=1)
    nodes = [helper.make_node("Gemm", ["a", "b"], ["y"], "first", transB=1, alpha=0.5)]
    if readers > 1:
        nodes.append(helper.make_node("Neg", ["a"], ["n"], "negative"))
        nodes.append(helper.make_node("Gemm", ["n", "b"], ["z"], "second", transB=1, alpha=0.5))
    outputs = ("y", "z")[:readers]
    found = run_engine(model_bytes(nodes, {"a": a, "b": b}, outputs), {"a": a, "b": b})
    expected = 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T)
    for name, sign in zip(outputs, (1, -1), strict=False):
        close(found[name], sign * expected, 70)
