"""Weights: every element type and every place a file may keep them in."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader import schema
from powerlab.engine.frontend.onnx_reader.tensors import to_array

DTYPES = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_)


def read(message, folder=None):
    return to_array(schema.decode(schema.Tensor, memoryview(message.SerializeToString())), folder)


def typed(values, name="w"):
    """Return a tensor that keeps its values in a typed list, as helper.make_tensor writes them."""
    return helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape, values.flatten())


@pytest.mark.parametrize("make", [numpy_helper.from_array, typed], ids=["raw", "typed"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4)], ids=str)
def test_every_type_is_read_and_floats_become_float32(make, dtype, shape):
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    found = read(make(values))
    assert found.dtype == (np.float32 if values.dtype.kind == "f" else dtype)
    np.testing.assert_array_equal(found, values)


@given(st.lists(st.floats(width=16, allow_nan=False), max_size=9))
def test_half_floats_keep_their_value(values):
    found = read(typed(np.array(values, np.float16)))
    np.testing.assert_array_equal(found, np.array(values, np.float32))


def external(tmp_path, location, **more):
    values = np.arange(6, dtype=np.float32)
    (tmp_path / "model").mkdir(exist_ok=True)
    (tmp_path / "model" / "weights.bin").write_bytes(b"\0" * 8 + values.tobytes())
    (tmp_path / "secret.bin").write_bytes(values.tobytes())
    message = TensorProto(name="w", data_type=1, dims=[6], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        message.external_data.append(onnx.StringStringEntryProto(key=key, value=value))
    return read(message, tmp_path / "model")


def test_external_data_is_read_at_its_offset(tmp_path):
    assert external(tmp_path, "weights.bin", offset="8", length="24").tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("location", ["../secret.bin", "sub/../../secret.bin", "/etc/hostname"])
def test_external_data_outside_the_models_folder_is_refused(tmp_path, location):
    with pytest.raises(PowerlabError, match=r"outside the model's folder"):
        external(tmp_path, location)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(PowerlabError, match=r"outside the model's folder"):
        external(tmp_path, "link.bin")


@pytest.mark.parametrize(
    ("location", "more", "sentence"),
    [
        ("gone.bin", {}, "is missing beside the model"),
        ("weights.bin", {"offset": "16"}, "reaches past the end"),
        ("weights.bin", {"offset": "-8"}, "is missing|reaches past"),
        ("weights.bin", {"offset": "many"}, "is not an integer"),
        ("", {}, "names none"),
    ],
)
def test_wrong_external_data_is_one_sentence(tmp_path, location, more, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        external(tmp_path, location, **more)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (TensorProto(name="w", data_type=1, dims=[3], raw_data=b"1234"), r"shape \(3,\) but holds 1 values"),
        (TensorProto(name="w", data_type=1, dims=[3], float_data=[1.0]), r"shape \(3,\) but holds 1 values"),
        (TensorProto(name="w", data_type=1, dims=[1], raw_data=b"123456"), r"holds 1.5 values"),
        (TensorProto(name="w", data_type=1, dims=[-3], raw_data=b""), "impossible shape"),
        (TensorProto(name="w", data_type=1, dims=[2**40, 2**40], raw_data=b""), "impossible shape"),
        (TensorProto(name="w", data_type=1, dims=[1] * 65, raw_data=b"1234"), "impossible shape"),
        (TensorProto(name="w", data_type=8, dims=[1], string_data=[b"a"]), "element type 8"),
        (TensorProto(name="w", data_type=99, dims=[1]), "element type 99"),
    ],
)
def test_a_wrong_tensor_is_named(message, sentence):
    with pytest.raises(PowerlabError, match=f"tensor 'w' .*{sentence}"):
        read(message)
