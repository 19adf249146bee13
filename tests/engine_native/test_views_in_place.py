"""What attention moves before and behind its products is read and written where it lies, and computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.program.operand import Element, Operand, compact_strides
from powerlab.engine.program.storage import Space, Storage

TOKENS, HEADS, SIZE = 7, 2, 24
WIDTH = HEADS * SIZE
CONSTANTS = {
    "w": np.random.default_rng(1).standard_normal((WIDTH, 3 * WIDTH), np.float32) / 4,
    "apart": np.array([1, TOKENS, 3, HEADS, SIZE]),
    "joined": np.array([1, TOKENS, WIDTH]),
    "first": np.array([0]),
    "ones": np.ones(SIZE, np.float32),
    "two": np.float32(2),
}
X = {"x": np.random.default_rng(2).standard_normal((1, TOKENS, WIDTH), np.float32)}


def step(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def attention(*between, query="q", key="kt", value="v"):
    """Return the nodes of attention as exporters write them; those between are in front of the first product."""
    return [
        step("MatMul", "x w", "rows"),
        step("Reshape", "rows apart", "heads"),
        step("Transpose", "heads", "turned", perm=[2, 0, 3, 1, 4]),
        step("Split", "turned", "q1 k1 v1", axis=0, num_outputs=3),
        *(step("Squeeze", f"{name}1 first", name) for name in "qkv"),
        step("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        *between,
        step("MatMul", f"{query} {key}", "scores"),
        step("Softmax", "scores", "shares", axis=-1),
        step("MatMul", f"shares {value}", "found"),
        step("Transpose", "found", "back", perm=[0, 2, 1, 3]),
        step("Reshape", "back joined", "y"),
    ]


def copies(data):
    """Return the copies in a plan, but for those of inputs and outputs."""
    session = Session(optimise(load_bytes(data)), threads=1)
    outside = ("x to rows", "y out")
    return [label for kernel, label in session.steps() if kernel.startswith("copy") and label not in outside]


def test_attention_copies_nothing():
    data = model_bytes(attention(), X, constants=CONSTANTS)
    check_by_ort(data, X, rtol=1e-4, atol=1e-5)
    assert copies(data) == []


@pytest.mark.parametrize(
    ("between", "changed", "most"),
    [
        (step("LayerNormalization", "q ones", "n", axis=-1), {"query": "n"}, 1),
        (step("Mul", "v two", "n"), {"value": "n"}, 0),
        (step("Relu", "kt", "n"), {"key": "n"}, 2),
        (step("Slice", "v two64 four64 three64", "n"), {"value": "n"}, 0),
    ],
    ids=["normalised", "scaled", "rectified", "cut"],
)
def test_what_other_operators_read_is_copied_once_at_most(between, changed, most):
    constants = CONSTANTS | {"two64": np.array([0]), "four64": np.array([16]), "three64": np.array([3])}
    nodes = attention(between, **changed)
    if between.op_type == "Slice":
        nodes[-1] = step("Reshape", "back all", "y")
        constants["all"] = np.array([1, TOKENS, 32])
    data = model_bytes(nodes, X, constants=constants)
    check_by_ort(data, X, rtol=1e-4, atol=1e-5)
    assert len(copies(data)) <= most


@pytest.mark.parametrize("output", ["turned", "k", "found", "back", "v1"])
def test_outputs_have_a_place_of_their_own(output):
    data = model_bytes(attention(), X, ("y", output), constants=CONSTANTS)
    check_by_ort(data, X, rtol=1e-4, atol=1e-5)


def test_whole_images_are_a_part_of_the_tensor():
    """Half of a batch is no copy, whoever reads it."""
    x = {"x": np.random.default_rng(3).standard_normal((4, 3, 5, 5), np.float32)}
    nodes = [
        step("Erf", "x", "e"),
        step("Split", "e", "a b", axis=0, num_outputs=2),
        step("Softmax", "a", "s", axis=-1),
        step("Mul", "s b", "y"),
    ]
    data = model_bytes(nodes, x)
    check_by_ort(data, x)
    assert copies(data) == []


def linear(name, width, rows, *, sum_first=False):
    """Return a linear layer of rows behind a normalisation, and what it is added to."""
    nodes = [
        step("LayerNormalization", "x ones", "n", axis=-1),
        step("MatMul", "n w", "p"),
        step("Add", "p b", "l"),
        step("Add", "x l" if sum_first else "l x", "y"),
    ]
    generator = np.random.default_rng(4)
    constants = {
        "ones": np.ones(width, np.float32),
        "w": generator.standard_normal((width, width), np.float32),
        "b": generator.standard_normal(width, np.float32),
    }
    return nodes, {"x": generator.standard_normal((*name, rows, width), np.float32)}, constants


def families(data):
    session = Session(optimise(load_bytes(data)), threads=1)
    return [kernel.split("_f32")[0] for kernel, _ in session.steps()]


@pytest.mark.parametrize(
    ("images", "width", "rows", "sums"),
    [((1,), 32, 12, 0), ((2,), 16, 12, 0), ((1,), 24, 12, 1), ((1,), 32, 3, 1)],
    ids=["sequence", "batch", "unaligned", "few rows"],
)
@pytest.mark.parametrize("sum_first", [False, True])
def test_a_linear_layer_of_rows_adds_what_is_there(images, width, rows, sums, sum_first):
    nodes, x, constants = linear(images, width, rows, sum_first=sum_first)
    nodes = [step("Erf", "x", "e"), *nodes, step("Softmax", "y", "z")]
    nodes[4].input[:] = [{"x": "e"}.get(one, one) for one in nodes[4].input]
    data = model_bytes(nodes, x, ("z",), constants=constants)
    check_by_ort(data, x, rtol=1e-4, atol=1e-5)
    assert families(data).count("add") == sums


@pytest.mark.parametrize("output", ["l", "p", "z"])
def test_what_else_is_wanted_is_there_too(output):
    nodes, x, constants = linear((1,), 32, 12)
    data = model_bytes([*nodes, step("Relu", "l", "z")], x, ("y", output), constants=constants)
    check_by_ort(data, x, rtol=1e-4, atol=1e-4)


def test_a_sum_of_two_linear_layers():
    """The second adds what the first made, which is there by then."""
    nodes, x, constants = linear((1,), 32, 12)
    nodes[3] = step("Add", "l k", "y")
    nodes.insert(1, step("MatMul", "n v", "k"))
    constants["v"] = np.random.default_rng(5).standard_normal((32, 32), np.float32)
    data = model_bytes(nodes, x, constants=constants)
    check_by_ort(data, x, rtol=1e-4, atol=1e-4)
    assert "add" not in families(data)


@st.composite
def views(draw):
    """Return a strided view of an array, and a shape of as many elements."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    held = np.arange(np.prod(sizes)).reshape(sizes)
    seen = held.transpose(draw(st.permutations(range(len(sizes)))))[:: draw(st.sampled_from([1, 2]))]
    shape, left = [], seen.size
    while left > 1:
        part = draw(st.sampled_from([one for one in range(1, left + 1) if left % one == 0]))
        shape.append(part)
        left //= part
        if len(shape) == 7:
            break
    return seen, (*shape, left)


@given(views())
def test_reshaped_views_have_the_same_elements_in_the_same_order(case):
    seen, shape = case
    strides = tuple(stride // seen.itemsize for stride in seen.strides)
    operand = Operand(Storage(0, Space.ARENA, 0, 999), Element.FLOAT, seen.shape, strides)
    found = operand.reshaped(shape)
    try:
        expected = seen.view()
        expected.shape = shape
    except AttributeError:
        assert found is None
        return
    assert found is not None
    for size, stride, wanted in zip(shape, found.strides, expected.strides, strict=True):
        assert size == 1 or stride == wanted // seen.itemsize
    assert found.sizes == shape


def test_compact_operands_take_any_shape():
    operand = Operand(Storage(0, Space.ARENA, 0, 24), Element.FLOAT, (2, 12), compact_strides((2, 12)))
    found = operand.reshaped((4, 1, 6))
    assert found is not None
    assert found.strides[0] == 6
    assert operand.reshaped((2, 12)) is not None
