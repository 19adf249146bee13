"""Quick check that a file is an ONNX model: only its outermost fields are parsed, whatever the size.

A model is a protobuf message (https://protobuf.dev/programming-guides/encoding); the numbers of its fields stand in
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, ``ModelProto``. What is inside the graph is read where models
are run: by the command line before an upload, and on the device.
"""

from __future__ import annotations

from collections.abc import Callable

from powerlab.domain.errors import PowerlabError

Read = Callable[[int, int], bytes]
"""Returns up to so many bytes (second argument) of the file from an offset on (first argument)."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEY_AND_SIZE = 20
"""A key and a size take ten bytes each at most."""
_MOST_FIELDS = 10_000
_WANTED = {1: (_VARINT, "the version of the format"), 7: (_BYTES, "the graph"), 8: (_BYTES, "the operator set")}


def check_outline(read: Read, byte_count: int) -> None:
    """Walk over the outermost fields of a file.

    Raises:
        PowerlabError: they are not those of an ONNX model, or the file ends in the middle of one.
    """
    found: set[int] = set()
    position = 0
    for _ in range(_MOST_FIELDS):
        if position == byte_count:
            break
        number, wire_type, position = _field(read(position, _KEY_AND_SIZE), position)
        if position > byte_count:
            raise _no_model("it ends inside a field")
        if number in _WANTED and wire_type != _WANTED[number][0]:
            raise _no_model(f"{_WANTED[number][1]} has another type")
        found.add(number)
    else:
        raise _no_model(f"it has more than {_MOST_FIELDS} outermost fields")
    missing = [words for number, (_, words) in _WANTED.items() if number not in found]
    if missing:
        raise _no_model(f"it lacks {missing[0]}")


def _field(head: bytes, position: int) -> tuple[int, int, int]:
    """Return a field's number and wire type, and where the next one begins."""
    key, used = _varint(head, 0)
    number, wire_type = key >> 3, key & 7
    if number == 0:
        raise _no_model("a field has the number 0")
    if wire_type in (_VARINT, _BYTES):
        value, used = _varint(head, used)
        return number, wire_type, position + used + (value if wire_type == _BYTES else 0)
    if wire_type in (_FIXED64, _FIXED32):
        return number, wire_type, position + used + (8 if wire_type == _FIXED64 else 4)
    raise _no_model(f"wire type {wire_type} is unknown")


def _varint(head: bytes, start: int) -> tuple[int, int]:
    """Return the number at ``start`` and the place after it."""
    value = 0
    for index, byte in enumerate(head[start : start + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, start + index + 1
    raise _no_model("it ends inside a number")


def _no_model(why: str) -> PowerlabError:
    return PowerlabError(f"the file is no ONNX model ({why}); export the model again, as one .onnx file.")
