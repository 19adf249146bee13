"""A prepared model as bytes: its structure as MessagePack, then its arrays, where a plan may read them.

    magic, digest of all that follows | length of the structure | the structure | arrays

Each array begins at a multiple of 64 bytes and has zeros behind it for loads that run past its end, as those that a
plan copies have. So a plan reads weights in a mapped file in place, and processes that map it have them in memory once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from powerlab.engine.prepared.prepared import Prepared
from powerlab.engine.program.program import Floats

MAGIC = b"powerlab prepared model 1\n".ljust(32, b"\0")
HEAD_BYTES = 64
"""Magic and digest."""

_ALIGNMENT = 64
_TAIL = bytes(256)
"""Behind each array: what ``Plan::add_constant`` puts behind its own copies."""

_LENGTH = struct.Struct("<Q")


class DamagedError(Exception):
    """Bytes that are no prepared model; whoever has them prepares the model anew."""


class _File(Struct, frozen=True):
    """The structure of a file: where its arrays lie, in bytes from the first one, and their shapes."""

    key: str
    name: str
    arrays: tuple[tuple[int, tuple[int, ...]], ...]
    prepared: msgspec.Raw


def parts(key: str, prepared: Prepared) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file, all but its head."""
    arrays: list[Floats] = []
    numbers: dict[int, int] = {}

    def number(value: Any) -> int:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{type(value)} cannot be kept")
        if id(value) not in numbers:
            numbers[id(value)] = len(arrays)
            arrays.append(np.ascontiguousarray(value, np.float32))
        return numbers[id(value)]

    structure = msgspec.msgpack.encode(prepared, enc_hook=number)
    places, end = [], 0
    for array in arrays:
        places.append((end, array.shape))
        end = _aligned(end + array.nbytes + len(_TAIL))
    encoded = msgspec.msgpack.encode(_File(key, prepared.name, tuple(places), msgspec.Raw(structure)))
    begun = HEAD_BYTES + _LENGTH.size + len(encoded)
    yield _LENGTH.pack(len(encoded)) + encoded + bytes(_aligned(begun) - begun)
    for array in arrays:
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(_aligned(array.nbytes + len(_TAIL)) - array.nbytes)


def name_in(data: memoryview) -> str:
    """Return the name of the model in a file, as it says; empty where it says none."""
    try:
        return str(_file(data)[0].name)
    except (msgspec.MsgspecError, struct.error):
        return ""


def read(data: memoryview, key: str) -> Prepared:
    """Return the model in a file; its arrays are views of the bytes.

    Args:
        data: the whole file, whose digest was found right.
        key: what the file must be of.

    Raises:
        DamagedError: it is something else.
    """
    try:
        file, first = _file(data)
        if file.key != key:
            raise DamagedError("it is another model")
        arrays = [
            np.frombuffer(data, np.float32, int(np.prod(shape)), first + offset).reshape(shape)
            for offset, shape in file.arrays
        ]
        return msgspec.msgpack.decode(file.prepared, type=Prepared, dec_hook=lambda _wanted, number: arrays[number])
    except (msgspec.MsgspecError, struct.error, ValueError, IndexError) as error:
        raise DamagedError(str(error)) from None


def _file(data: memoryview) -> tuple[_File, int]:
    """Return the structure, and where the first array begins."""
    (length,) = _LENGTH.unpack_from(data, HEAD_BYTES)
    begin = HEAD_BYTES + _LENGTH.size
    return msgspec.msgpack.decode(data[begin : begin + length], type=_File), _aligned(begin + length)


def _aligned(count: int) -> int:
    return -(-count // _ALIGNMENT) * _ALIGNMENT
