"""Operators that go element by element: any shapes that broadcast, floats and integers, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, check_by_ort, model_bytes, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ops.casting import cast_value
from powerlab.engine.passes.fold.constants import fold_constants

FLOATS = np.dtype(np.float32)
WHOLE = [np.dtype(name) for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")]
BOOLS = np.dtype(bool)


def truncated(x, y):
    return np.trunc(x.astype(np.float64) / y.astype(np.float64)).astype(x.dtype)


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
    "Mod": np.mod,
}
WHOLE_ONLY = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor, "Div": truncated}
LOGICAL = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal}


def made(generator, shape, dtype):
    if dtype == FLOATS:
        return generator.integers(-8, 9, shape).astype(np.float32) / 2
    if dtype == BOOLS:
        return generator.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -(2**40)), min(limits.max, 2**40)
    return generator.integers(low, high, shape, endpoint=True).astype(dtype)


@st.composite
def broadcast_shapes(draw, most=5):
    """Return two shapes that broadcast, of different ranks, with ones in either."""
    whole = draw(st.lists(st.integers(1, 5), max_size=most))
    shapes = []
    for _ in range(2):
        own = [size if draw(st.booleans()) else 1 for size in whole]
        shapes.append(tuple(own[draw(st.integers(0, len(own))) :]))
    return shapes


@settings(max_examples=150)
@given(broadcast_shapes(), st.sampled_from([*BINARY, *WHOLE_ONLY, *LOGICAL]), st.data())
def test_two_tensors_of_any_shapes_and_types(shapes, operator, data):
    if operator in WHOLE_ONLY:
        dtype, function = data.draw(st.sampled_from(WHOLE)), WHOLE_ONLY[operator]
    elif operator in LOGICAL and (operator not in BINARY or data.draw(st.booleans())):
        dtype, function = BOOLS, LOGICAL[operator]
    else:
        dtype, function = data.draw(st.sampled_from([FLOATS, *WHOLE])), BINARY[operator]
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, y = (made(generator, shape, dtype) for shape in shapes)
    if operator in ("Div", "Mod"):
        y = np.where(y == 0, y.dtype.type(1), y)
    extra = {"fmod": 1} if operator == "Mod" and dtype == FLOATS else {}
    expected = np.asarray(np.fmod(x, y) if extra else function(x, y))
    constant = data.draw(st.sampled_from(["", "x", "y"]))
    inputs = {"x": x, "y": y}
    constants = {constant: inputs.pop(constant)} if constant else {}
    found = run_engine(
        node_bytes(operator, inputs, outputs=["z"], constants=constants, order=["x", "y"], **extra), inputs
    )
    alike(found, {"z": expected})


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_where_chooses_between_broadcast_tensors(dtype):
    generator = np.random.default_rng(1)
    inputs = {
        "c": generator.integers(0, 2, (3, 1, 5)).astype(bool),
        "x": made(generator, (4, 1), np.dtype(dtype)),
        "z": made(generator, (2, 3, 4, 5), np.dtype(dtype)),
    }
    found = run_engine(node_bytes("Where", inputs), inputs)
    alike(found, {"y": np.where(*inputs.values())})


@pytest.mark.parametrize("operator", ["Max", "Min", "Mean", "Sum"])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_many_operands_of_several_shapes(operator, count):
    generator = np.random.default_rng(2)
    shapes = [(3, 1, 4), (1,), (2, 3, 1, 1), (4,)][:count]
    inputs = {f"x{index}": generator.standard_normal(shape, np.float32) for index, shape in enumerate(shapes)}
    check_by_ort(node_bytes(operator, inputs), inputs)


@pytest.mark.parametrize("base", ["float32", "int32", "int64"])
@pytest.mark.parametrize("exponent", ["float32", "int64"])
def test_powers_have_the_type_of_the_base(base, exponent):
    inputs = {"x": np.array([[1, 2, 3], [4, 5, 7]], base), "e": np.array([0, 2, 3], exponent)}
    check_by_ort(node_bytes("Pow", inputs), inputs)


@pytest.mark.parametrize("exponent", [np.nan, np.inf, -np.inf, 40.0])
def test_a_power_that_is_no_whole_number_is_what_a_cast_makes_of_it(exponent):
    """ONNX leaves it open, so x86 and Arm differ where nobody decides: not-a-number is 0, the rest the nearest."""
    base, limits = np.array([3], np.int32), np.iinfo(np.int32)
    inputs = {"x": base, "y": np.array([exponent], np.float32)}
    found = run_engine(node_bytes("Pow", inputs, outputs=("z",)), inputs)["z"]
    folded = fold_constants(load_bytes(node_bytes("Pow", {}, constants=inputs, outputs=("z",)))).constants["z"]
    expected = 0 if np.isnan(exponent) or exponent < 0 else limits.max
    assert found.tolist() == folded.tolist() == [expected]


@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders_have_the_sign_of_one_side(fmod):
    x, y = (np.array(values, np.int32) for values in ([-7, 7, -7, 7, 6, 0], [3, -3, -3, 3, 3, 5]))
    found = run_engine(node_bytes("Mod", {"x": x, "d": y}, fmod=fmod), {"x": x, "d": y})
    alike(found, {"y": np.fmod(x, y) if fmod else np.mod(x, y)})


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_shifts_drop_what_leaves_the_type(direction, dtype):
    x, y = np.array([1, 3, 200, 255], dtype), np.array([0, 3, 7, 1], dtype)
    function = np.left_shift if direction == "LEFT" else np.right_shift
    found = run_engine(node_bytes("BitShift", {"x": x, "b": y}, direction=direction), {"x": x, "b": y})
    alike(found, {"y": function(x, y)})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint16", "int64"])
def test_bits_are_turned_round(dtype):
    x = np.array([0, 1, 5, 127], dtype)
    alike(run_engine(node_bytes("BitwiseNot", {"x": x}), {"x": x}), {"y": np.bitwise_not(x)})


def test_numbers_that_are_none_are_found():
    x = np.array([1, np.nan, np.inf, -np.inf, 0], np.float32)
    alike(run_engine(node_bytes("IsNaN", {"x": x}), {"x": x}), {"y": np.isnan(x)})
    for below, above in ((0, 0), (0, 1), (1, 0), (1, 1)):
        data = node_bytes("IsInf", {"x": x}, detect_negative=below, detect_positive=above)
        alike(run_engine(data, {"x": x}), {"y": (np.isneginf(x) & bool(below)) | (np.isposinf(x) & bool(above))})


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "float32"])
@pytest.mark.parametrize("source", ["float32", "int64", "int8", "bool"])
def test_casts(source, target):
    values = {"float32": [0, -1.75, 1.75, 100.5, 3e5, -3e5], "int64": [0, 1, -1, 300, 70000, -(2**33)], "int8": [-5, 7]}
    x = np.array(values.get(source, [True, False]), source)
    number = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    alike(run_engine(node_bytes("Cast", {"x": x}, to=number), {"x": x}), {"y": cast_value(x, np.dtype(target))})
    like = {"x": x, "l": np.zeros(1, target)}
    alike(run_engine(node_bytes("CastLike", like), like), {"y": cast_value(x, np.dtype(target))})


def test_floats_outside_a_type_become_its_nearest_number():
    x = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 127.9, -128.9], np.float32)
    assert cast_value(x, np.dtype(np.int8)).tolist() == [127, -128, 0, 127, -128, 127, -128]
    assert cast_value(x, np.dtype(np.int64))[:2].tolist() == [2**63 - 1, -(2**63)]


def test_a_cast_to_half_floats_rounds_to_them():
    generator = np.random.default_rng(4)
    edges = [0, -0.0, 65504, 65519.99, 65520, 1e30, -np.inf, np.nan, 2**-14, 2**-24, 2**-25, 1.5 * 2**-25, -3e-8, 2049]
    x = np.concatenate([np.float32(edges), (generator.standard_normal(3000) * 10.0 ** generator.integers(-9, 6, 3000))])
    x = x.astype(np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    found = run_engine(node_bytes("Cast", {"x": x}, to=10), {"x": x})
    np.testing.assert_array_equal(found["y"].astype(np.float16), expected)
    np.testing.assert_array_equal(found["y"], expected.astype(np.float32))


def test_whole_numbers_keep_all_their_bits():
    x = np.array([2**53 + 1, -(2**62), 2**63 - 1], np.int64)
    alike(run_engine(node_bytes("Identity", {"x": x}), {"x": x}), {"y": x})


def test_whole_numbers_and_floats_meet_in_one_model():
    """Token by token, what is masked counts nothing: the tensors of exporters' attention masks."""
    nodes = [
        helper.make_node("Cast", ["mask"], ["f"], to=1),
        helper.make_node("Sub", ["one", "f"], ["away"]),
        helper.make_node("Mul", ["away", "least"], ["bias"]),
        helper.make_node("Add", ["x", "bias"], ["y"]),
    ]
    inputs = {
        "x": np.random.default_rng(3).standard_normal((2, 3, 5, 5), np.float32),
        "mask": np.array([[[[1, 1, 1, 0, 0]]], [[[1, 1, 1, 1, 0]]]], np.int64),
    }
    constants = {"one": np.float32(1), "least": np.float32(-1000)}
    check_by_ort(model_bytes(nodes, inputs, constants=constants), inputs)


@pytest.mark.parametrize(
    ("operator", "inputs", "sentence"),
    [
        ("Div", {"x": np.int32([1, 2]), "d": np.int32([1, 0])}, "the node 'n' divides an integer by 0"),
        ("Mod", {"x": np.int64([1]), "d": np.int64([0])}, "the node 'n' divides an integer by 0"),
        ("Sub", {"x": np.uint64([1]), "d": np.uint64([2])}, "the node 'n' makes an integer below 0"),
    ],
)
def test_numbers_nobody_can_compute_with_are_named(operator, inputs, sentence):
    data = node_bytes(operator, inputs)
    with pytest.raises(PowerlabError, match=sentence):
        run_engine(data, inputs)


def test_more_than_eight_axes_are_fine_where_they_lie_together():
    x = np.arange(2**9, dtype=np.float32).reshape((2,) * 9)
    alike(run_engine(node_bytes("Sub", {"x": x, "z": x[0]}), {"x": x, "z": x[0]}), {"y": x - x[0]})
    order = list(range(9))[::-1]
    with pytest.raises(PowerlabError, match="works on 9 axes"):
        run_engine(node_bytes("Transpose", {"x": x}, perm=order), {"x": x})


def test_a_number_too_small_for_a_reciprocal_divides():
    """1 / 1e-45 is infinite in float32, and 0 times that would be no number."""
    tiny = np.float32(1e-45)
    x = np.float32([[0.0, 1.0, -1.0, 1e-40]])
    data = node_bytes("Div", {"x": x}, constants={"c": tiny})
    found = run_engine(data, {"x": x})["y"]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found[:, :3], (x / tiny)[:, :3])
