"""The codec ``delta-zlib-1``: used by older agents, and for values that are not multiples of a step.

Times and values each become differences of 64-bit integers (a value's IEEE 754 bits taken as an integer, so that
nothing is rounded), the eight bytes of every difference are sorted into eight planes, and zlib compresses times and
values together. Differences wrap around at 2**64, which makes every float come back exactly.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray


def encode(time_ns: NDArray[np.int64], value: NDArray[np.float64], _resolution: float) -> bytes:
    """Return samples as bytes."""
    bits = np.ascontiguousarray(value, dtype=np.float64).view(np.int64)
    return zlib.compress(_pack(time_ns) + _pack(bits), level=6)


def most_bytes(sample_count: int) -> int:
    """Return how long the data is before compression."""
    return 16 * sample_count


def decode(data: bytes, sample_count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return samples; raises ValueError where the data holds something else."""
    size = most_bytes(sample_count)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes instead of {size}")
    return _unpack(data[: size // 2]), _unpack(data[size // 2 :]).view(np.float64)


def _pack(column: NDArray[np.int64]) -> bytes:
    differences = np.diff(column, prepend=np.int64(0)).astype("<i8")
    return np.ascontiguousarray(differences.view(np.uint8).reshape(-1, 8).T).tobytes()


def _unpack(data: bytes) -> NDArray[np.int64]:
    planes = np.frombuffer(data, dtype=np.uint8).reshape(8, -1)
    differences = np.ascontiguousarray(planes.T).view("<i8").reshape(-1)
    return np.cumsum(differences, dtype=np.int64)
