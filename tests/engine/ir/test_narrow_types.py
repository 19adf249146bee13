"""Element types that numpy lacks, against ml_dtypes, which onnx brings along: codes and rounding, also natively."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from quantized_models import model_bytes

from powerlab.engine import Session
from powerlab.engine.ir.narrow_types import NARROW, NarrowFloat, NarrowInteger, Past, unpacked

TYPES = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
FLOATS = st.floats(width=32)


def same(found, expected):
    np.testing.assert_array_equal(found, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


def test_all_types_are_tried():
    assert {number for number, kind in NARROW.items() if isinstance(kind, NarrowFloat)} == TYPES.keys()


@pytest.mark.parametrize("number", TYPES, ids=lambda number: NARROW[number].name)
def test_every_code_is_the_number_it_stands_for(number):
    kind = NARROW[number]
    codes = np.arange(1 << kind.bits, dtype=np.uint16 if kind.bits == 16 else np.uint8)
    same(kind.decoded(codes), codes.view(TYPES[number]).astype(np.float32))


@pytest.mark.parametrize("number", TYPES, ids=lambda number: NARROW[number].name)
@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_rounding_is_to_the_nearest(number, values):
    given_values = np.array(values, np.float32)
    if NARROW[number].past == Past.LARGEST:
        given_values = given_values[~np.isnan(given_values)]  # of which ml_dtypes makes a 0 of either sign
    with np.errstate(all="ignore"):
        expected = given_values.astype(TYPES[number]).astype(np.float32)
    same(NARROW[number].rounded(given_values, saturate=False), expected)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("number", TYPES, ids=lambda number: NARROW[number].name)
def test_the_kernel_rounds_as_numpy_does(number, saturate, tmp_path):
    kind = NARROW[number]
    generator = np.random.default_rng(0)
    numbers = generator.standard_normal(5000) * 2.0 ** generator.uniform(-30, 20, 5000)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, kind.largest, -kind.largest, kind.largest * 1.03, 1e-45, 3e38]
    codes = kind.decoded(np.arange(1 << min(kind.bits, 8)))
    with np.errstate(over="ignore"):
        values = np.concatenate([numbers, special, codes]).astype(np.float32)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=number, saturate=saturate)]
    shapes = {"x": (TensorProto.FLOAT, values.shape)}
    path = tmp_path / "cast.onnx"
    path.write_bytes(model_bytes(nodes, shapes, {"y": (number, None)}, {}, opset=24))
    same(Session(path, threads=1).run({"x": values})["y"], kind.rounded(values, bool(saturate)))


@pytest.mark.parametrize("number", [TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2])
@given(data=st.data())
def test_packed_integers_are_unpacked(number, data):
    kind = NARROW[number]
    assert isinstance(kind, NarrowInteger)
    low, high = kind.limits
    values = data.draw(st.lists(st.integers(low, high), min_size=1, max_size=33))
    raw = helper.make_tensor("w", number, (len(values),), values).int32_data
    packed = np.array(list(raw), np.uint8)
    assert kind.decoded(unpacked(packed, kind, len(values))).tolist() == values
