"""Bytes that are moved between two layers, as converters from TensorFlow Lite write it, stay bytes of layers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from onnx import helper
from quantized_models import model_bytes

from powerlab.engine import Session

FLOAT, BYTES = onnx.TensorProto.FLOAT, onnx.TensorProto.INT8
SCALES = {"s": np.float32(0.04137), "z": np.int8(-3), "ws": np.float32(0.0027183), "wz": np.int8(0)}


def layer(x, y, weights, constants, pads=1):
    """Return a convolution of bytes x to bytes y."""
    generator = np.random.default_rng(ord(y))
    constants[f"{y}_w"] = generator.integers(-127, 128, weights).astype(np.int8)
    return [
        helper.make_node("DequantizeLinear", [x, "s", "z"], [f"{y}_x"]),
        helper.make_node("DequantizeLinear", [f"{y}_w", "ws", "wz"], [f"{y}_k"]),
        helper.make_node("Conv", [f"{y}_x", f"{y}_k"], [f"{y}_c"], pads=[pads] * 4),
        helper.make_node("QuantizeLinear", [f"{y}_c", "s", "z"], [y]),
    ]


MOVES = {
    "concat": ([helper.make_node("Concat", ["a", "b"], ["m"], axis=1)], 16, {}),
    "pad": (
        [helper.make_node("Pad", ["a", "around", "z"], ["m"])],
        8,
        {"around": np.array([0, 0, 1, 2, 0, 0, 0, 1])},
    ),
    "pad with another byte": (
        [helper.make_node("Pad", ["a", "around", "seven"], ["m"])],
        8,
        {"around": np.array([0, 0, 1, 2, 0, 0, 0, 1]), "seven": np.int8(7)},
    ),
    "pad with zero": (
        [helper.make_node("Pad", ["a", "around"], ["m"])],
        8,
        {"around": np.array([0, 0, 1, 2, 0, 0, 0, 1])},
    ),
    "transpositions": (
        [
            helper.make_node("Transpose", ["a"], ["t"], perm=[0, 2, 3, 1]),
            helper.make_node("Transpose", ["t"], ["m"], perm=[0, 3, 1, 2]),
        ],
        8,
        {},
    ),
    "slice": (
        [helper.make_node("Slice", ["a", "begin", "end", "axes"], ["m"])],
        4,
        {"begin": np.array([2]), "end": np.array([6]), "axes": np.array([1])},
    ),
    "split": (
        [
            helper.make_node("Split", ["a", "parts"], ["first", "second"], axis=1),
            helper.make_node("Concat", ["second", "first"], ["m"], axis=1),
        ],
        8,
        {"parts": np.array([4, 4])},
    ),
}


def between(name):
    """Return a model of two layers that read a byte image, a move, and one more layer."""
    moves, channels, constants = MOVES[name]
    constants = {**constants, **SCALES}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        *layer("x_q", "a", (8, 3, 3, 3), constants),
        *layer("x_q", "b", (8, 3, 3, 3), constants),
        *moves,
        *layer("m", "r", (5, channels, 3, 3), constants),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    return model_bytes(nodes, {"x": (FLOAT, [1, 3, 9, 10])}, {"y": (FLOAT, None)}, constants, opset=17)


@pytest.mark.parametrize("name", MOVES)
def test_what_moves_between_two_layers_is_no_integer_of_64_bits(tmp_path, name):
    path = tmp_path / "model.onnx"
    path.write_bytes(between(name))
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 9, 10), dtype=np.float32)}
    session = Session(path, threads=2)
    found, expected = session.run(x)["y"], run_ort(path.read_bytes(), x, as_written=True)["y"]
    assert found.shape == expected.shape
    # ONNX Runtime rounds sums of floats: what is nearly a half may become another byte, which a next layer multiplies.
    assert np.abs(found - expected).max() <= SCALES["s"] * 1.001
    assert np.mean(found != expected) < 0.02
    assert not [kernel for kernel, _ in session.steps() if "i64" in kernel]


def test_bytes_that_are_fed_stand_for_what_their_reader_says(tmp_path):
    constants = dict(SCALES)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        *layer("t", "r", (5, 3, 3, 3), constants),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 3, 1]),
    ]
    data = model_bytes(nodes, {"x": (BYTES, [1, 9, 10, 3])}, {"y": (BYTES, None)}, constants, opset=17)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    x = {"x": np.random.default_rng(0).integers(-128, 128, (1, 9, 10, 3)).astype(np.int8)}
    found, expected = Session(path, threads=1).run(x)["y"], run_ort(data, x, as_written=True)["y"]
    assert found.dtype == np.int8
    assert np.abs(found.astype(int) - expected).max() <= 1
    assert np.mean(found != expected) < 0.02


def test_bytes_of_two_scales_side_by_side_stay_bytes(tmp_path):
    constants = {**SCALES, "s2": np.float32(0.02)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("QuantizeLinear", ["x", "s2", "z"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["m"], axis=1),
        helper.make_node("DequantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    data = model_bytes(nodes, {"x": (FLOAT, [1, 3, 4, 4])}, {"y": (FLOAT, None)}, constants, opset=17)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 4, 4), dtype=np.float32)}
    np.testing.assert_array_equal(Session(path, threads=1).run(x)["y"], run_ort(data, x, as_written=True)["y"])


def test_bytes_may_be_padded_with_one_that_is_fed(tmp_path):
    constants = {**SCALES, "around": np.array([0, 0, 1, 2, 0, 0, 0, 1])}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("Pad", ["a", "around", "byte"], ["m"]),
        helper.make_node("DequantizeLinear", ["m", "s", "z"], ["y"]),
    ]
    inputs = {"x": (FLOAT, [1, 3, 4, 4]), "byte": (BYTES, [])}
    data = model_bytes(nodes, inputs, {"y": (FLOAT, None)}, constants, opset=17)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    x = {"x": np.random.default_rng(0).standard_normal((1, 3, 4, 4), dtype=np.float32), "byte": np.asarray(7, np.int8)}
    np.testing.assert_array_equal(Session(path, threads=1).run(x)["y"], run_ort(data, x, as_written=True)["y"])
