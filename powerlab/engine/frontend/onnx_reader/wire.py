"""The protobuf wire format: a buffer becomes numbered fields, without a schema and without the protobuf package.

Source: https://protobuf.dev/programming-guides/encoding. Work and memory are linear in the buffer: payloads are views.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MOST_FIELDS = 2**21
"""More fields than any network has, weights being one field each; one of two bytes may take some hundred of memory."""

_VARINT_MAX_BYTES = 10
_BLOCK_BYTES = 1 << 20

Value = int | memoryview

_protobuf: Any = importlib.import_module("powerlab.native._native").protobuf


def malformed(what: str) -> PowerlabError:
    """Return the error for bytes that are no protobuf message."""
    return PowerlabError(f"it is no ONNX file, or not a whole one ({what}); export or download the model again.")


def signed(value: int) -> int:
    """Return an unsigned 64-bit value as the signed one with the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: memoryview, most: int = MOST_FIELDS) -> list[tuple[int, int, Value]]:
    """Return (field number, wire type, value) in file order: a varint as int, anything else as its bytes.

    Args:
        data: the message.
        most: fields that are read; what is behind them is not looked at.

    Raises:
        PowerlabError: the bytes are truncated or no protobuf message.
    """
    try:
        found: list[tuple[int, int, Value]] = _protobuf.fields(data, most)
    except ValueError as error:
        raise malformed(str(error)) from None
    return found


def packed_varints(data: memoryview) -> Iterator[NDArray[np.int64]]:
    """Yield the signed 64-bit values of a packed field, block by block: many at once, but in little memory."""
    start = 0
    while start < len(data):
        end = min(start + _BLOCK_BYTES, len(data))
        while end < len(data) and data[end - 1] >= 0x80 and end - start < _BLOCK_BYTES + _VARINT_MAX_BYTES:
            end += 1
        yield _decoded(np.frombuffer(data[start:end], np.uint8))
        start = end


def _decoded(octets: NDArray[np.uint8]) -> NDArray[np.int64]:
    ends = np.flatnonzero(octets < 0x80)
    if ends.size == 0 or ends[-1] != octets.size - 1:
        raise malformed("it ends inside a number")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _VARINT_MAX_BYTES:
        raise malformed("a number is longer than ten bytes")
    values = np.zeros(ends.size, np.uint64)
    for index in range(longest):
        reaching = lengths > index
        septets = (octets[starts[reaching] + index] & 0x7F).astype(np.uint64)
        values[reaching] |= septets << np.uint64(7 * index)
    return values.view(np.int64)


def float32(value: memoryview) -> float:
    """Return the float in four bytes."""
    result: float = struct.unpack("<f", value)[0]
    return result
