"""float16 to float32 and back: numpy's bits, by the processor's instructions and number by number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from powerlab.engine import Session
from powerlab.engine.runtime.outside_types import to_engine, to_model
from powerlab.engine.target.tiers import native_engine

HALF, FLOAT = np.dtype(np.float16), np.dtype(np.float32)
EVERY_HALF = np.arange(2**16, dtype=np.uint16).view(np.float16)
BETWEEN_LANES = 3
"""Too few for a vector: these are converted number by number."""


def same_bits(found, expected):
    """Numbers that are none may differ in what they carry along."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(np.signbit(found[~nan]), np.signbit(expected[~nan]))
    np.testing.assert_array_equal(found[~nan], expected[~nan])


def in_parts(convert, values, dtype):
    return np.concatenate([convert(part, dtype) for part in np.array_split(values, len(values) // BETWEEN_LANES + 1)])


@pytest.mark.parametrize("whole", [True, False], ids=["vectors", "one by one"])
def test_every_half_becomes_the_float_it_is(whole):
    found = to_engine(EVERY_HALF, FLOAT) if whole else in_parts(to_engine, EVERY_HALF, FLOAT)
    same_bits(found, EVERY_HALF.astype(np.float32))


@pytest.mark.parametrize("whole", [True, False], ids=["vectors", "one by one"])
def test_floats_are_rounded_as_numpy_rounds_them(whole):
    exact = EVERY_HALF.astype(np.float32)
    finite = exact[np.isfinite(exact)]
    generator = np.random.default_rng(0)
    middles = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    floats = np.concatenate(
        [
            exact,
            middles,
            np.nextafter(middles, np.float32(np.inf)),
            np.nextafter(middles, np.float32(-np.inf)),
            generator.integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32),
            np.float32([65519.996, 65520, -65520, 1e38, 1e-45, -0.0, np.inf, -np.inf, np.nan]),
        ]
    )
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16)
    same_bits(to_model(floats, HALF) if whole else in_parts(to_model, floats, HALF), expected)


@given(st.integers(0, 40), st.integers(0, 3))
def test_any_number_of_them_and_any_strides(count, skipped):
    halves = np.linspace(-3, 3, (count + 1) * (skipped + 1)).astype(np.float16)[:: skipped + 1]
    same_bits(to_engine(halves, FLOAT), halves.astype(np.float32))
    same_bits(to_model(halves.astype(np.float32)[::-1], HALF), halves[::-1])


def test_as_many_are_needed_on_both_sides():
    with pytest.raises(ValueError, match="report this as a bug"):
        native_engine().to_floats(halves=np.zeros(3, np.uint16), floats=np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="report this as a bug"):
        native_engine().to_halves(floats=np.zeros(3, np.float32), halves=np.zeros(4, np.uint16))


def test_a_model_of_halves_takes_and_returns_them(tmp_path):
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, (2, 5)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "test", infos[:1], infos[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    x = np.linspace(-1, 1, 20).astype(np.float16).reshape(5, 4).T[::2]
    found = Session(tmp_path / "model.onnx", threads=1).run({"x": x})["y"]
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.maximum(x, 0))
