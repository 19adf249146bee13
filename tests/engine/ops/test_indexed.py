"""Gather and Scatter in all their forms, against ONNX Runtime; a place outside the data ends the run."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, run_ort
from general_models import alike, check_by_ort, model_bytes, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise

GENERATOR = np.random.default_rng(5)


def made(shape, dtype="float32"):
    return GENERATOR.integers(-50, 50, shape).astype(dtype)


@settings(max_examples=80)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), max_size=3),
    st.sampled_from(["float32", "int64", "uint8"]),
    st.sampled_from(["int32", "int64"]),
    st.data(),
)
def test_gather_along_any_axis(shape, picked, dtype, index_dtype, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    inputs = {"x": made(shape, dtype), "i": GENERATOR.integers(-shape[axis], shape[axis], picked).astype(index_dtype)}
    inputs["i"] = np.asarray(inputs["i"])
    found = run_engine(node_bytes("Gather", inputs, axis=axis), inputs)
    alike(found, {"y": np.take(inputs["x"], inputs["i"], axis)})


@settings(max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.sampled_from(["float32", "int32"]), st.data())
def test_gather_elements(shape, dtype, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    own = [data.draw(st.integers(1, size)) for size in shape]
    own[axis] = data.draw(st.integers(1, 6))
    inputs = {"x": made(shape, dtype), "i": GENERATOR.integers(-shape[axis], shape[axis], own)}
    seen = inputs["x"][tuple(slice(None) if at == axis else slice(size) for at, size in enumerate(own))]
    expected = np.take_along_axis(seen, inputs["i"] % shape[axis], axis)
    alike(run_engine(node_bytes("GatherElements", inputs, axis=axis), inputs), {"y": expected})


@pytest.mark.parametrize(
    ("shape", "indices", "batch"),
    [
        ((4, 5), (2,), 0),
        ((4, 5), (3, 2), 0),
        ((4, 5, 6), (2, 3, 1), 0),
        ((2, 3, 4), (2, 5, 1), 1),
        ((2, 3, 4, 5), (2, 3, 2, 2), 2),
    ],
)
def test_gather_by_tuples(shape, indices, batch):
    named = shape[batch : batch + indices[-1]]
    places = np.stack([GENERATOR.integers(-size, size, indices[:-1]) for size in named], -1)
    inputs = {"x": made(shape), "i": places}
    check_by_ort(node_bytes("GatherND", inputs, batch_dims=batch), inputs)
    known = node_bytes("GatherND", {}, constants=inputs, order=["x", "i"], batch_dims=batch)
    alike(run_engine(known, {}), run_engine(node_bytes("GatherND", inputs, batch_dims=batch), inputs))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(reduction, dtype, axis):
    shape, own = (4, 5, 3), (2, 5, 3) if axis == 0 else (4, 2, 3) if axis == 1 else (4, 5, 2)
    if reduction == "none":  # each place once: else ONNX leaves open which update wins
        index = np.argsort(GENERATOR.random(shape), axis)[tuple(slice(size) for size in own)]
    else:
        index = GENERATOR.integers(-shape[axis], shape[axis], own)
    inputs = {"x": made(shape, dtype), "i": index, "u": made(own, dtype)}
    check_by_ort(node_bytes("ScatterElements", inputs, axis=axis, reduction=reduction), inputs)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
@pytest.mark.parametrize(("axis", "rows"), [(0, [3, -4]), (1, [4, 0, -2])])
def test_rows_are_scattered_with_one_index_each(reduction, dtype, axis, rows):
    """As PyTorch writes ``x[rows] = u``: the indices are expanded to all elements."""
    shape = (4, 5, 3, 7)
    own = tuple(len(rows) if at == axis else size for at, size in enumerate(shape))
    inputs = {"x": made(shape, dtype), "u": made(own, dtype)}
    nodes = [
        helper.make_node("Expand", ["i", "s"], ["j"]),
        helper.make_node("ScatterElements", ["x", "j", "u"], ["y"], axis=axis, reduction=reduction),
    ]
    index = np.int64(rows).reshape([-1 if at == axis else 1 for at in range(4)])
    constants = {"i": index, "s": np.int64(own)}
    model = model_bytes(nodes, inputs, {"y": (shape, dtype)}, constants=constants, opset=18)
    check_by_ort(model, inputs)


def test_scatters_that_follow_on_each_other_change_only_what_nobody_else_reads():
    """The data that is copied is the input, the zeros, and what another output shows."""
    nodes = [
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("ScatterElements", ["zeros", "i", "u"], ["a"]),
        helper.make_node("ScatterElements", ["a", "k", "u"], ["b"]),
        helper.make_node("ScatterElements", ["b", "i", "v"], ["c"]),
        helper.make_node("Add", ["b", "c"], ["y"]),
        helper.make_node("ScatterElements", ["x", "i", "u"], ["d"]),
        helper.make_node("ScatterND", ["d", "n", "v"], ["e"]),
        helper.make_node("Add", ["e", "x"], ["z"]),
        helper.make_node("Mul", ["zeros", "x"], ["o"]),
    ]
    inputs = {"x": made((6, 2)), "i": np.int64([[0, 1], [3, 2]]), "k": np.int64([[2, 5], [4, 4]])}
    inputs |= {"n": np.int64([[1], [5]]), "u": made((2, 2)), "v": made((2, 2))}
    outputs = dict.fromkeys("aczyo", ((6, 2), "float32"))
    check_by_ort(model_bytes(nodes, inputs, outputs, constants={"s": np.int64([6, 2])}), inputs)


def test_a_scatter_of_no_indices_hands_its_data_on():
    inputs = {"x": made((4, 3))}
    constants = {"i": np.zeros((0, 3), np.int64), "u": np.zeros((0, 3), np.float32)}
    data = node_bytes("ScatterElements", inputs, constants=constants, order=["x", "i", "u"])
    alike(run_engine(data, inputs), {"y": inputs["x"]})
    assert not any(kernel.startswith("put") for kernel, _ in Session(optimise(load_bytes(data)), threads=1).steps())


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize(
    ("shape", "tuples", "named"),
    [((6, 5), (3,), 1), ((4, 5, 6), (2, 2), 2), ((4, 5), (7,), 2), ((4, 5), (), 1), ((4, 5), (), 2), ((4,), (), 1)],
)
def test_scatter_by_tuples(reduction, shape, tuples, named):
    count = int(np.prod(tuples))
    flat = GENERATOR.permutation(int(np.prod(shape[:named])))[:count]
    index = np.stack(np.unravel_index(flat, shape[:named]), -1).reshape(*tuples, named).astype(np.int64)
    inputs = {"x": made(shape), "i": index, "u": made((*tuples, *shape[named:]))}
    check_by_ort(node_bytes("ScatterND", inputs, reduction=reduction), inputs)


@settings(max_examples=80)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_a_box_that_constant_tuples_name_is_copied(shape, data):
    """As exporters write a slice that is assigned to: forwards or backwards, every so many, in any order of axes."""
    named = data.draw(st.integers(1, len(shape)))
    runs = []
    for size in shape[:named]:
        begin, end = sorted(data.draw(st.tuples(*[st.integers(0, size - 1)] * 2)))
        runs.append(
            np.arange(size)[begin : end + 1 : data.draw(st.integers(1, 2))][:: data.draw(st.sampled_from([1, -1]))]
        )
    order = data.draw(st.permutations(range(named)))
    grid = np.stack(np.meshgrid(*runs, indexing="ij"), -1).transpose(*order, named)
    if data.draw(st.booleans()):
        grid = grid - np.array(shape[:named])  # from behind
    inputs = {"x": made(shape), "u": made((*grid.shape[:-1], *shape[named:]))}
    model = onnx_bytes(
        [helper.make_node("ScatterND", ["x", "i", "u"], ["y"])],
        {name: value.shape for name, value in inputs.items()},
        constants={"i": grid.astype(np.int64)},
    )
    graph = load_bytes(model)
    found = Session(optimise(graph), threads=2)
    alike(found.run(inputs), run_ort(model, inputs))
    assert not any(kernel.startswith("put") for kernel, _ in found.steps())


def test_what_a_box_of_everything_hides_is_not_copied():
    """As exporters write ``x[:, :] = y``."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("ScatterND", ["r", "i", "u"], ["y"])]
    inputs = {"x": made((1, 4, 3)), "u": made((1, 4, 3))}
    grid = np.stack(np.meshgrid(*map(np.arange, (1, 4, 3)), indexing="ij"), -1)
    model = onnx_bytes(nodes, {name: value.shape for name, value in inputs.items()}, constants={"i": grid})
    session = Session(optimise(load_bytes(model)), threads=1)
    alike(session.run(inputs), {"y": inputs["u"]})
    assert sum(label == "y" for _, label in session.steps()) == 1


@pytest.mark.parametrize("index", [[[0], [1], [1]], [[0], [2], [3]], [[2], [0], [1]]])
def test_tuples_that_name_no_box_are_put_one_by_one(index):
    model = onnx_bytes(
        [helper.make_node("ScatterND", ["x", "i", "u"], ["y"])],
        {"x": (4, 2), "u": (3, 2)},
        constants={"i": np.array(index, np.int64)},
    )
    inputs = {"x": made((4, 2)), "u": made((3, 2))}
    session = Session(optimise(load_bytes(model)), threads=1)
    alike(session.run(inputs), run_ort(model, inputs))
    assert any(kernel.startswith("put") for kernel, _ in session.steps())


def test_updates_of_one_place_are_made_in_order():
    inputs = {"x": np.zeros((3, 2), np.float32), "i": np.int64([[1], [1], [1]]), "u": made((3, 2))}
    found = run_engine(node_bytes("ScatterND", inputs), inputs)["y"]
    np.testing.assert_array_equal(found[1], inputs["u"][-1])


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_one_hot(axis, dtype):
    inputs = {"x": np.array([[1, -2, 4], [9, 0, -9]], dtype), "v": np.float32([2, 5])}
    data = node_bytes("OneHot", inputs, constants={"d": np.int64([5])}, order=["x", "d", "v"], axis=axis)
    classes = np.expand_dims(inputs["x"], axis)
    ladder = np.arange(5).reshape([5 if at == axis % 3 else 1 for at in range(3)])
    expected = np.where(np.where(classes < 0, classes + 5, classes) == ladder, np.float32(5), np.float32(2))
    alike(run_engine(data, inputs), {"y": expected})


def test_an_embedding_of_tokens():
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["words"]),
        helper.make_node("Shape", ["ids"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["n"]),
        helper.make_node("Range", ["zero", "n", "step"], ["places"]),
        helper.make_node("Gather", ["positions", "places"], ["order"]),
        helper.make_node("Add", ["words", "order"], ["y"]),
    ]
    constants = {
        "table": made((1000, 32)),
        "positions": made((16, 32)),
        "one": np.int64(1),
        "zero": np.int64(0),
        "step": np.int64(1),
    }
    inputs = {"ids": GENERATOR.integers(0, 1000, (2, 7))}
    check_by_ort(model_bytes(nodes, inputs, constants=constants), inputs)


@pytest.mark.parametrize(
    ("operator", "wrong"),
    [
        ("Gather", [[5]]),
        ("Gather", [[-6]]),
        ("GatherElements", [[5]]),
        ("GatherND", [[5]]),
        ("ScatterElements", [[-6]]),
    ],
)
def test_a_place_outside_the_data_ends_the_run_and_the_next_one_is_sound(operator, wrong):
    inputs = {"x": made((5, 1)), "i": np.int64([[0]])}
    if operator.startswith("Scatter"):
        inputs["u"] = made((1, 1))
    data = node_bytes(operator, inputs)
    session = Session(optimise(load_bytes(data)), threads=2)
    sound = session.run(inputs)
    with pytest.raises(PowerlabError, match="the node 'n' was given an index outside its data; run the model with"):
        session.run({**inputs, "i": np.int64(wrong)})
    alike(session.run(inputs), sound)


@pytest.mark.parametrize(
    ("operator", "inputs", "sentence"),
    [
        ("Gather", {"x": made((3,)), "i": np.float32([1])}, "integers as indices"),
        ("GatherElements", {"x": made((3, 2)), "i": np.int64([1])}, "do not fit"),
        ("GatherND", {"x": made((3,)), "i": np.int64([[1, 1]])}, "indices of 2 axes"),
        ("ScatterND", {"x": made((3, 2)), "i": np.int64([[1]]), "u": made((2,))}, "do not fit"),
        ("ScatterElements", {"x": made((3,)), "i": np.int64([1]), "u": made((2,))}, "do not fit"),
    ],
)
def test_what_does_not_fit_is_named(operator, inputs, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        run_engine(node_bytes(operator, inputs), inputs)
