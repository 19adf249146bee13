"""Reductions, running sums, largest elements: against numpy in double precision, of floats and of integers."""

from __future__ import annotations

import numpy as np
import pytest
from general_models import alike, check_by_ort, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st

REDUCTIONS = {
    "ReduceL1": lambda x, **how: np.abs(x).sum(**how),
    "ReduceL2": lambda x, **how: np.sqrt(np.square(x).sum(**how)),
    "ReduceLogSum": lambda x, **how: np.log(x.sum(**how)),
    "ReduceLogSumExp": lambda x, **how: np.log(np.exp(x).sum(**how)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **how: np.square(x).sum(**how),
}


def ints(*values):
    return np.array(values, np.int64)


@st.composite
def shapes_and_axes(draw):
    shape = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    return shape, tuple(axes)


@settings(max_examples=120)
@given(shapes_and_axes(), st.sampled_from(sorted(REDUCTIONS)), st.booleans(), st.integers(0, 100))
def test_floats_are_reduced_as_in_double_precision(sized, operator, keep, seed):
    shape, axes = sized
    x = np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(np.float32)
    data = node_bytes(operator, {"x": x}, constants={"a": ints(*axes)}, keepdims=int(keep))
    expected = REDUCTIONS[operator](x.astype(np.float64), axis=axes, keepdims=keep)
    alike(run_engine(data, {"x": x}), {"y": np.asarray(expected, np.float32)})


@settings(max_examples=60)
@given(
    shapes_and_axes(),
    st.sampled_from(["ReduceL1", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]),
    st.sampled_from(["int32", "int64"]),
    st.integers(0, 100),
)
def test_whole_numbers_wrap_at_the_ends_of_their_type(sized, operator, dtype, seed):
    shape, axes = sized
    x = np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)
    with np.errstate(over="ignore"):
        wide = REDUCTIONS[operator](x.astype(np.int64), axis=axes, keepdims=True)
    data = node_bytes(operator, {"x": x}, constants={"a": ints(*axes)})
    alike(run_engine(data, {"x": x}), {"y": wide.astype(dtype)})


@pytest.mark.parametrize("shape", [(3, 5, 300), (700, 130), (2, 3, 4, 50, 7), (100_000,)])
@pytest.mark.parametrize("axes", [(0,), (-1,)])
def test_long_axes_lose_no_digits(shape, axes):
    x = np.random.default_rng(1).standard_normal(shape, np.float32) + 100
    data = node_bytes("ReduceSum", {"x": x}, constants={"a": ints(*axes)}, keepdims=0)
    found = run_engine(data, {"x": x})["y"]
    np.testing.assert_allclose(found, x.astype(np.float64).sum(axes), rtol=1e-7)


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
def test_axes_may_be_an_attribute_or_all_or_none(operator):
    x = np.random.default_rng(2).standard_normal((3, 4, 5), np.float32)
    check_by_ort(node_bytes(operator, {"x": x}, opset=11, axes=[1, -1]), {"x": x})
    check_by_ort(node_bytes(operator, {"x": x}, opset=11), {"x": x})
    check_by_ort(node_bytes(operator, {"x": x}, constants={"a": ints()}, noop_with_empty_axes=0), {"x": x})


def test_a_sum_of_no_axes_is_the_tensor_itself():
    x = np.random.default_rng(2).standard_normal((3, 4), np.float32)
    alike(run_engine(node_bytes("ReduceSum", {"x": x}, noop_with_empty_axes=1), {"x": x}), {"y": x})


def test_the_logarithm_of_a_sum_of_powers_does_not_overflow():
    x = np.float32([[1000, 1000, 999], [-1000, -1001, -np.inf], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 1]])
    found = run_engine(node_bytes("ReduceLogSumExp", {"x": x}, constants={"a": ints(1)}, keepdims=0), {"x": x})["y"]
    most = 1000 + np.log(2 + np.exp(-1.0))
    np.testing.assert_allclose(found, [most, -1000 + np.log(1 + np.exp(-1.0)), -np.inf, np.inf], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64"])
@pytest.mark.parametrize("operator", sorted(REDUCTIONS))
def test_reductions_of_constant_whole_numbers_are_those_of_a_run(operator, dtype):
    x = np.array([[3, 2], [2, 1], [7, 0]], dtype)
    run = run_engine(node_bytes(operator, {"x": x}, constants={"a": ints(1)}), {"x": x})["y"]
    np.testing.assert_array_equal(run_engine(node_bytes(operator, {}, constants={"x": x, "a": ints(1)}), {})["y"], run)


def test_not_a_number_is_the_largest_and_the_smallest():
    x = np.float32([[1, np.nan, 3], [1, 2, 3]])
    for operator, expected in (("ReduceMax", [np.nan, 3]), ("ReduceMin", [np.nan, 1])):
        found = run_engine(node_bytes(operator, {"x": x}, constants={"a": ints(1)}, keepdims=0), {"x": x})["y"]
        np.testing.assert_array_equal(found, np.float32(expected))


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_places_of_the_largest_and_smallest(operator, last, axis, dtype):
    x = np.random.default_rng(3).integers(0, 4, (3, 5, 6)).astype(dtype)
    for keep in (0, 1):
        data = node_bytes(operator, {"x": x}, axis=axis, keepdims=keep, select_last_index=last, opset=13)
        check_by_ort(data, {"x": x})


@pytest.mark.parametrize(("last", "expected"), [(0, [1, 0, 0]), (1, [2, 0, 2])])
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_the_place_of_what_is_no_number_is_the_same_as_when_it_is_folded(operator, last, expected):
    x = np.float32([[1, np.nan, np.nan], [np.nan, 2, 1], [np.nan, np.nan, np.nan]])
    options = {"axis": 1, "keepdims": 0, "select_last_index": last}
    folded = run_engine(node_bytes(operator, {}, constants={"x": x}, **options), {})["y"]
    assert folded.tolist() == run_engine(node_bytes(operator, {"x": x}, **options), {"x": x})["y"].tolist() == expected


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_sums(exclusive, reverse, axis, dtype):
    x = np.random.default_rng(4).integers(-5, 6, (3, 4, 5)).astype(dtype)
    data = node_bytes("CumSum", {"x": x}, constants={"a": np.int64(axis)}, exclusive=exclusive, reverse=reverse)
    check_by_ort(data, {"x": x})


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_products(exclusive, reverse, axis, dtype):
    x = np.random.default_rng(4).integers(1, 4, (1, 4, 7)).astype(dtype)
    turned = np.flip(x, axis) if reverse else x
    if exclusive:
        turned = np.insert(np.delete(turned, -1, axis), 0, 1, axis)
    expected = np.cumprod(turned, axis, dtype=dtype)
    expected = {"y": np.flip(expected, axis) if reverse else expected}
    options = {"exclusive": exclusive, "reverse": reverse}
    alike(run_engine(node_bytes("CumProd", {"x": x}, constants={"a": np.int64(axis)}, **options), {"x": x}), expected)
    alike(run_engine(node_bytes("CumProd", {}, constants={"x": x, "a": np.int64(axis)}, **options), {}), expected)


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=3),
    st.sampled_from(["float32", "int64"]),
    st.booleans(),
    st.data(),
)
def test_the_first_in_order(shape, dtype, largest, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, shape[axis]))
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-9, 10, shape).astype(dtype)
    places = np.take(np.argsort(-x if largest else x, axis, kind="stable"), np.arange(count), axis)
    node = node_bytes(
        "TopK", {"x": x}, outputs=["v", "i"], constants={"k": ints(count)}, axis=axis, largest=int(largest)
    )
    alike(run_engine(node, {"x": x}), {"v": np.take_along_axis(x, places, axis), "i": places})


@pytest.mark.parametrize(("largest", "expected"), [(1, [1, 3, 2]), (0, [4, 0, 2])])
@pytest.mark.parametrize("constant", [False, True], ids=["runs", "folded"])
def test_what_is_no_number_counts_as_the_largest_of_an_order(largest, expected, constant):
    x = np.float32([2, np.nan, 3, np.nan, -np.inf])
    given, known = ({}, {"x": x}) if constant else ({"x": x}, {})
    node = node_bytes("TopK", given, outputs=["v", "i"], constants=known | {"k": ints(3)}, largest=largest)
    assert run_engine(node, given)["i"].tolist() == expected


@pytest.mark.parametrize("constant", [False, True], ids=["runs", "folded"])
def test_large_whole_numbers_are_told_apart_in_order(constant):
    x = np.int64([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
    given, known = ({}, {"x": x}) if constant else ({"x": x}, {})
    node = node_bytes("TopK", given, outputs=["v", "i"], constants=known | {"k": ints(4)})
    assert run_engine(node, given)["i"].tolist() == [3, 1, 0, 2]


def test_nobody_needs_to_read_where_the_first_were():
    x = np.float32([[3, 1, 2]])
    found = run_engine(node_bytes("TopK", {"x": x}, outputs=["v"], constants={"k": ints(2)}), {"x": x})
    alike(found, {"v": np.float32([[3, 2]])})
