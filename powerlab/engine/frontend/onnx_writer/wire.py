"""The protobuf wire format, written: numbered fields one after the other.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

VARINT, BYTES, FIXED32 = 0, 2, 5


def varint(value: int) -> bytes:
    """Return an integer of 64 bits, seven bits a byte, the lowest first."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def integer(number: int, value: int) -> bytes:
    """Return a field that holds an integer."""
    return varint(number << 3 | VARINT) + varint(value)


def real(number: int, value: float) -> bytes:
    """Return a field that holds a float32."""
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def content(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes, or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def text(number: int, value: str) -> bytes:
    """Return a field that holds a text."""
    return content(number, value.encode("utf-8", "replace"))


def integers(number: int, values: Iterable[int]) -> bytes:
    """Return fields that hold a list of integers, packed."""
    return content(number, b"".join(map(varint, values)))
