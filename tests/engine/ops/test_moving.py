"""Operators that move elements and compute nothing, of every type, against numpy and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, check_by_ort, model_bytes, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.passes.fold.constants import fold_constants

DTYPES = ["float32", "int32", "uint8", "bool"]


def counted(shape, dtype="float32"):
    """Return a tensor whose elements tell where they were, as far as the type can."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (numbers % 2 == 0) if dtype == "bool" else numbers.astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.sampled_from(DTYPES), st.data())
def test_axes_in_any_order(shape, dtype, data):
    order = data.draw(st.permutations(range(len(shape))))
    x = counted(shape, dtype)
    alike(run_engine(node_bytes("Transpose", {"x": x}, perm=order), {"x": x}), {"y": x.transpose(order)})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 15, 16, 17, 33, 50]), min_size=2, max_size=3),
    st.sampled_from(["float32", "int64"]),
    st.data(),
)
def test_long_axes_in_any_order(shape, dtype, data):
    """Long enough to be copied in tiles, with and without a rest."""
    order = data.draw(st.permutations(range(len(shape))))
    x = counted(tuple(shape), dtype)
    alike(run_engine(node_bytes("Transpose", {"x": x}, perm=order), {"x": x}), {"y": x.transpose(order)})


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(2, 15),
    st.sampled_from([2, 16, 33]),
    st.sampled_from(["float32", "int64"]),
)
def test_short_axes_are_woven_into_each_other(outer, lines, count, dtype):
    """As where channels become the pixels of a window."""
    x = counted((*outer, lines, count, 3), dtype)
    order = (*range(len(outer)), len(outer) + 2, len(outer) + 1, len(outer))
    alike(run_engine(node_bytes("Transpose", {"x": x}, perm=order), {"x": x}), {"y": x.transpose(order)})
    x = counted((*outer, lines, 2, count), dtype)
    order = (*range(len(outer)), len(outer) + 1, len(outer) + 2, len(outer))
    alike(run_engine(node_bytes("Transpose", {"x": x}, perm=order), {"x": x}), {"y": x.transpose(order)})


def test_heads_and_many_rows_change_places():
    """Runs too short for a call each, in several pieces."""
    x = counted((2, 700, 3, 19))
    data = node_bytes("Transpose", {"x": x}, perm=(0, 2, 1, 3))
    alike(run_engine(data, {"x": x}), {"y": x.transpose(0, 2, 1, 3)})


@pytest.mark.parametrize(("images", "rows", "copies"), [(1, 5, 1), (2, 4, 1), (2, 5, 2)])
def test_rows_that_are_filled_up_are_seen_as_images_and_back(images, rows, copies):
    """Images that go on without a gap take one copy to fill their rows up, and one to close them.

    The input is copied, too, and the output.
    """
    x, weights = counted((images, rows, 24)) / 100, np.eye(24, dtype=np.float32)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["y"])]
    data = model_bytes(nodes, {"x": x}, constants={"w": weights})
    alike(run_engine(data, {"x": x}), {"y": x})
    session = Session(optimise(load_bytes(data)), threads=1)
    moved = [kernel for kernel, _ in session.steps() if kernel.startswith("copy_f32")]
    assert len(moved) == 2 * copies + 2, moved


@settings(max_examples=60)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.sampled_from(DTYPES), st.data())
def test_slices_forwards_and_backwards(shape, dtype, data):
    x, chosen = counted(shape, dtype), []
    for size in shape:
        step = data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
        start, end = (data.draw(st.integers(-size - 2, size + 2)) for _ in range(2))
        chosen.append((start, end, step))
    parts = tuple(
        slice(0 if step > 0 and start < -size else start, None if step < 0 and end < -size else end, step)
        for (start, end, step), size in zip(chosen, shape, strict=True)
    )
    expected = x[parts]
    if not expected.size:
        return
    starts, ends, steps = (ints(*values) for values in zip(*chosen, strict=True))
    constants = {"s": starts, "e": ends, "a": ints(*range(len(shape))), "t": steps}
    alike(run_engine(node_bytes("Slice", {"x": x}, constants=constants), {"x": x}), {"y": expected})


@settings(max_examples=40)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from(DTYPES), st.data())
def test_tiles(shape, dtype, data):
    counts = [data.draw(st.integers(1, 3)) for _ in shape]
    x = counted(shape, dtype)
    alike(run_engine(node_bytes("Tile", {"x": x}, constants={"r": ints(*counts)}), {"x": x}), {"y": np.tile(x, counts)})


@settings(max_examples=80)
@given(
    st.lists(st.integers(2, 5), min_size=1, max_size=4),
    st.sampled_from(["constant", "edge", "reflect", "wrap"]),
    st.sampled_from(["float32", "int64"]),
    st.data(),
)
def test_pads(shape, mode, dtype, data):
    x = counted(shape, dtype)
    pads = [(data.draw(st.integers(-1, 3)), data.draw(st.integers(0, 3))) for _ in shape]
    if mode == "reflect":
        pads = [
            (min(before, size - 1 + min(before, 0)), min(after, size - 2))
            for (before, after), size in zip(pads, shape, strict=True)
        ]
    kept = x[tuple(slice(max(0, -before), None) for before, _ in pads)]
    added = [(max(0, before), after) for before, after in pads]
    how = {"constant_values": 7} if mode == "constant" else {}
    expected = np.pad(kept, added, mode=mode, **how)
    before, after = zip(*pads, strict=True)
    constants = {"p": ints(*before, *after), "v": np.array(7, dtype)}
    found = run_engine(node_bytes("Pad", {"x": x}, constants=constants, mode=mode, opset=19), {"x": x})
    alike(found, {"y": expected})


def test_pads_of_some_axes_with_a_computed_filling():
    inputs = {"x": counted((2, 3)), "v": np.float32([5]).reshape(())}
    data = node_bytes("Pad", inputs, constants={"p": ints(1, 2), "a": ints(-1)}, order=["x", "p", "v", "a"])
    alike(run_engine(data, inputs), {"y": np.pad(inputs["x"], ((0, 0), (1, 2)), constant_values=5)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_splits_and_joins(dtype, axis):
    x = counted((4, 5, 6), dtype)
    size = x.shape[axis]
    nodes = [
        helper.make_node("Split", ["x", "s"], ["a", "b", "c"], axis=axis),
        helper.make_node("Concat", ["c", "a", "b"], ["y"], axis=axis),
    ]
    data = model_bytes(nodes, {"x": x}, ["y", "b"], constants={"s": ints(1, 2, size - 3)})
    a, b, c = np.split(x, [1, 3], axis)
    alike(run_engine(data, {"x": x}), {"y": np.concatenate([c, a, b], axis), "b": b})


def test_splits_into_parts_of_which_the_last_is_smaller():
    x = counted((7, 2))
    data = node_bytes("Split", {"x": x}, outputs=["a", "b", "c"], num_outputs=3)
    alike(run_engine(data, {"x": x}), {"a": x[:3], "b": x[3:6], "c": x[6:]})


@pytest.mark.parametrize("dtype", DTYPES)
def test_expand_repeats_axes_of_one(dtype):
    x = counted((3, 1), dtype)
    found = run_engine(node_bytes("Expand", {"x": x}, constants={"s": ints(2, 1, 4)}), {"x": x})
    alike(found, {"y": np.broadcast_to(x, (2, 3, 4))})


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_channels_and_pixels_change_places(mode):
    x = counted((2, 12, 3, 5))
    check_by_ort(node_bytes("DepthToSpace", {"x": x}, blocksize=2, mode=mode), {"x": x})
    image = counted((1, 3, 4, 6))
    check_by_ort(node_bytes("SpaceToDepth", {"x": image}, blocksize=2), {"x": image})


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_sequences_are_turned_round_up_to_their_length(time, batch):
    shape = (4, 3, 2) if time == 0 else (3, 4, 2)
    inputs = {"x": counted(shape), "l": ints(1, 4, 2)}
    check_by_ort(node_bytes("ReverseSequence", inputs, time_axis=time, batch_axis=batch), inputs)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [-2, 0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_triangles(upper, k, dtype):
    x = counted((2, 4, 5), dtype)
    function = np.triu if upper else np.tril
    found = run_engine(node_bytes("Trilu", {"x": x}, constants={"k": np.int64(k)}, upper=upper), {"x": x})
    alike(found, {"y": function(x, k)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_of_any_type(dtype):
    x = counted((2, 3, 4), dtype)
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Unsqueeze", ["a", "u"], ["b"]),
        helper.make_node("Transpose", ["b"], ["c"], perm=[2, 1, 0]),
        helper.make_node("Flatten", ["c"], ["y"], axis=2),
    ]
    constants = {"s": ints(6, 4), "u": ints(1)}
    expected = x.reshape(6, 1, 4).transpose(2, 1, 0).reshape(4, 6)
    alike(run_engine(model_bytes(nodes, {"x": x}, constants=constants), {"x": x}), {"y": expected})


def test_what_shapes_alone_decide_needs_no_run():
    x = counted((2, 3))
    nodes = [
        helper.make_node("EyeLike", ["x"], ["e"], k=1),
        helper.make_node("Size", ["x"], ["n"]),
        helper.make_node("Shape", ["x"], ["s"], start=1),
        helper.make_node("Range", ["zero", "n", "two"], ["r"]),
    ]
    data = model_bytes(nodes, {"x": x}, "ensr", constants={"zero": np.int64(0), "two": np.int64(2)})
    expected = {"e": np.eye(2, 3, 1, np.float32), "n": np.array(6), "s": ints(3), "r": ints(0, 2, 4)}
    alike(run_engine(data, {"x": x}), expected)


def test_a_split_of_a_shape_is_followed_when_shapes_are_inferred():
    """As exporters take a shape apart, and put it together in another way."""
    x = counted((2, 3, 4))
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Split", ["s"], ["a", "b", "c"], num_outputs=3),
        helper.make_node("Mul", ["a", "b"], ["ab"]),
        helper.make_node("Concat", ["ab", "c"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    alike(run_engine(model_bytes(nodes, {"x": x}), {"x": x}), {"y": x.reshape(6, 4)})


@pytest.mark.parametrize(
    ("operator", "inputs", "constants", "attributes", "sentence"),
    [
        ("Split", {"x": counted((4,))}, {"s": ints(1, 2)}, {}, "which do not fit"),
        ("Split", {"x": counted((4,))}, {}, {"num_outputs": 2**31 - 1}, "has 2 outputs"),
        ("Tile", {"x": counted((4, 2))}, {"r": ints(2)}, {}, "repeats a tensor of 2 axes"),
        (
            "Pad",
            {"x": counted((3,))},
            {"p": ints(3, 0)},
            {"mode": "reflect"},
            "reflects 3 elements of an axis that has 3",
        ),
        ("Pad", {"x": counted((3,))}, {"p": ints(-2, -2)}, {}, "takes more away"),
        ("Pad", {"x": counted((3,))}, {"p": ints(1, 1)}, {"mode": "mirror"}, "pads by 'mirror'"),
        ("DepthToSpace", {"x": counted((1, 6, 2, 2))}, {}, {"blocksize": 2}, "spreads 6 channels"),
        ("NonZero", {"x": counted((3,))}, {}, {}, "but only a run gives its value"),
        ("Trilu", {"x": counted((3,))}, {}, {}, "needs a matrix"),
        ("ReverseSequence", {"x": counted((4, 2)), "n": counted((2,))}, {}, {}, "needs lengths of type int64"),
        ("ReverseSequence", {"x": counted((4, 2))}, {"n": ints(1, -1)}, {}, r"from 0 to 4, but they are \(1, -1\)"),
        ("ReverseSequence", {"x": counted((4, 2))}, {"n": ints(5, 1)}, {}, "from 0 to 4"),
        ("ReverseSequence", {"x": counted((4, 2)), "n": ints(1, -1)}, {}, {}, "'n'"),
        ("ReverseSequence", {"x": counted((4, 2)), "n": ints(5, 1)}, {}, {}, "'n'"),
        ("Expand", {"x": counted((3,))}, {"s": ints(2, 4)}, {}, "do not fit"),
    ],
)
def test_what_cannot_be_moved_is_named(operator, inputs, constants, attributes, sentence):
    outputs = ["y", "z"] if operator == "Split" else ["y"]
    with pytest.raises(PowerlabError, match=sentence):
        run_engine(node_bytes(operator, inputs, outputs=outputs, constants=constants, **attributes), inputs)


def test_a_number_is_padded_nowhere():
    data = node_bytes("Pad", {}, constants={"x": np.float32(3), "p": np.zeros(0, np.int64)})
    assert fold_constants(load_bytes(data)).constants["y"] == 3
