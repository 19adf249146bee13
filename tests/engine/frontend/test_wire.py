"""The protobuf wire format, against Google's own package and against damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto

from onnx_bytes import varint
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.onnx_reader import schema, wire

INT64 = st.integers(-(2**63), 2**63 - 1)


def signed(value):
    return value - 2**64 if value >= 2**63 else value


@given(st.lists(INT64, max_size=20))
def test_packed_numbers_are_read_as_protobuf_writes_them(values):
    message = TensorProto(int64_data=values)
    assert list(schema.decode(schema.Tensor, memoryview(message.SerializeToString())).int64_data) == values


def test_many_packed_numbers_are_read_too():
    values = [0, 1, 127, 128, 300, 2**40, -1, -(2**63), 2**63 - 1, 5] * 1000
    message = TensorProto(int64_data=values)
    assert list(schema.decode(schema.Tensor, memoryview(message.SerializeToString())).int64_data) == values


@given(st.lists(INT64, max_size=5))
def test_unpacked_numbers_are_read_too(values):
    data = b"".join(b"\x08" + TensorProto(data_type=1, int64_data=[value]).SerializeToString()[4:] for value in values)
    assert list(schema.decode(schema.Tensor, memoryview(data)).dims) == values


@given(st.lists(st.floats(width=32), max_size=20), st.lists(st.floats(), max_size=20), st.binary(), st.text())
def test_floats_bytes_and_text_are_read_as_protobuf_writes_them(singles, doubles, raw, name):
    message = TensorProto(float_data=singles, double_data=doubles, raw_data=raw, name=name)
    found = schema.decode(schema.Tensor, memoryview(message.SerializeToString()))
    np.testing.assert_array_equal(np.array(found.float_data, np.float32), np.array(singles, np.float32))
    np.testing.assert_array_equal(np.array(found.double_data), np.array(doubles, np.float64))
    assert bytes(found.raw_data) == raw
    assert found.name == name


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_an_error(data):
    try:
        found = wire.fields(memoryview(data))
    except PowerlabError:
        return
    assert all(number > 0 for number, _, _ in found)


@given(st.binary(max_size=64))
def test_any_packed_bytes_are_numbers_or_an_error(data):
    field = b"\x3a" + varint(len(data)) + data
    try:
        values = list(schema.decode(schema.Tensor, memoryview(field)).int64_data)
    except PowerlabError:
        return
    expected, value, bits = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << bits
        bits += 7
        if byte < 0x80:
            expected.append(signed(value & 0xFFFF_FFFF_FFFF_FFFF))
            value = bits = 0
    assert values == expected


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), INT64), max_size=20), st.integers(0, 25))
def test_fields_are_read_up_to_the_most(numbers, most):
    message = b"".join(varint(number << 3) + varint(value % 2**64) for number, value in numbers)
    found = wire.fields(memoryview(message), most)
    assert [(number, signed(value)) for number, _, value in found] == numbers[:most]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x08", "ends inside a number"),
        (b"\x08" + b"\xff" * 11, "longer than ten bytes"),
        (b"\x12\x05ab", "ends inside a field"),
        (b"\x0d\x00", "ends inside a field"),
        (b"\x0b", "wire type 3"),
        (b"\x00\x01", "field has the number 0"),
    ],
)
def test_damage_is_said_in_a_sentence(data, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        wire.fields(memoryview(data))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x42\x01\xff", "not UTF-8"),
        (b"\x40\x01", "a number stands where text"),
        (b"\x12\x00", "where an integer belongs"),
        (b"\x22\x03abc", "wrong size"),
    ],
)
def test_a_field_of_the_wrong_kind_is_an_error(data, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        schema.decode(schema.Tensor, memoryview(data))
