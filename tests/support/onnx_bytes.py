"""Files that look like ONNX models from outside, of any size, made without the onnx package."""

from __future__ import annotations

import hashlib
import random


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, payload: bytes) -> bytes:
    """Return a field with a length."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def onnx_like(size: int, seed: int = 0) -> bytes:
    """Return a file of exactly that size (16 or more), random inside its graph."""
    head = varint(1 << 3) + varint(8) + field(8, varint(2 << 3) + varint(17))
    for count in range(size - len(head), -1, -1):
        made = head + field(7, random.Random(seed).randbytes(count))
        if len(made) == size:
            return made
    raise AssertionError(f"no file of {size} bytes")


def sha256(data: bytes) -> str:
    """Return the digest in hex."""
    return hashlib.sha256(data).hexdigest()
