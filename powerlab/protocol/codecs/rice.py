"""Rice's code for unsigned integers that are mostly small, with NumPy alone (Rice and Plaunt, 1971; RFC 9639, 9.2.7).

A number's lowest k bits are kept as they are and the rest in unary, as so many zeros and a one. k is the same for all;
noise takes a tenth of a bit more than its entropy, and there is no table to send, which is what short chunks need. A
rest of 24 or more is written as 24, and the integer stands in 64 bits at the end.

The bytes: k; the low bits of all numbers, whole bytes first; the unary parts, least bit first; what was too large.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TOO_LARGE = 24
_PROBE = 2048
"""Numbers that k is chosen by."""

_Numbers = NDArray[np.uint64]


def cost_bits(numbers: _Numbers) -> int:
    """Return about how many bits numbers take."""
    if len(numbers) == 0:
        return 0
    sample, costs = _costs(numbers)
    return int(costs.min()) * len(numbers) // len(sample)


def pack(numbers: _Numbers) -> bytes:
    """Return numbers as bytes."""
    if len(numbers) == 0:
        return b""
    k = int(_costs(numbers)[1].argmin())
    high = np.minimum(numbers >> np.uint64(k), np.uint64(_TOO_LARGE)).astype(np.int64)
    unary = np.zeros(int(high.sum()) + len(high), dtype=np.uint8)
    unary[np.cumsum(high + 1) - 1] = 1
    large = numbers[high == _TOO_LARGE].astype("<u8")
    parts = (np.packbits(unary, bitorder="little"), large)
    return bytes([k]) + _pack_low(numbers, k) + b"".join(part.tobytes() for part in parts)


def most_bytes(count: int) -> int:
    """Return how many bytes so many numbers take at most."""
    return 16 + count * (64 + _TOO_LARGE + 1 + 64) // 8


def unpack(data: bytes, count: int) -> _Numbers:
    """Return so many numbers; raises ValueError where the data holds something else."""
    if count == 0:
        if data:
            raise ValueError("there is more data than announced")
        return np.empty(0, dtype=np.uint64)
    if not data or data[0] > 63:
        raise ValueError("there are no numbers")
    k = data[0]
    end = 1 + (count * k + 7) // 8
    low = _unpack_low(data[1:end], count, k)
    rest = np.frombuffer(data, dtype=np.uint8, offset=min(end, len(data)))
    ones = np.flatnonzero(np.unpackbits(rest, bitorder="little").view(np.bool_))[:count]
    if len(ones) < count:
        raise ValueError("the numbers end early")
    high = ones.copy()
    high[1:] -= ones[:-1] + 1
    large = np.flatnonzero(high >= _TOO_LARGE)
    tail = rest[int(ones[-1]) // 8 + 1 :]
    if len(tail) != 8 * len(large):
        raise ValueError("the data do not end where they should")
    numbers = (high.astype(np.uint64) << np.uint64(k)) | low
    numbers[large] = np.frombuffer(tail.tobytes(), dtype="<u8")
    return numbers


def _costs(numbers: _Numbers) -> tuple[_Numbers, NDArray[np.int64]]:
    """Return some of the numbers, and how many bits they take with each k."""
    sample = numbers[:: 1 + len(numbers) // _PROBE]
    most = min(63, int(sample.max()).bit_length())
    high = sample[:, None] >> np.arange(most + 1, dtype=np.uint64)
    large = high >= _TOO_LARGE
    unary = np.where(large, np.uint64(_TOO_LARGE + 64), high).sum(axis=0).astype(np.int64)
    return sample, unary + len(sample) * np.arange(1, most + 2)


def _pack_low(numbers: _Numbers, k: int) -> bytes:
    """Return the k low bits of all numbers: whole bytes number by number, what is left bit by bit."""
    whole, left = divmod(k, 8)
    octets = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)
    bits = (octets[:, min(whole, 7)] >> np.arange(left, dtype=np.uint8)[:, None]) & 1
    packed: bytes = octets[:, :whole].tobytes() + np.packbits(bits, bitorder="little").tobytes()
    return packed


def _unpack_low(data: bytes, count: int, k: int) -> _Numbers:
    whole, left = divmod(k, 8)
    if len(data) < (count * k + 7) // 8:
        raise ValueError("the numbers end early")
    octets = np.zeros((count, 8), dtype=np.uint8)
    octets[:, :whole] = np.frombuffer(data, dtype=np.uint8, count=count * whole).reshape(count, whole)
    rest = np.frombuffer(data[count * whole :], dtype=np.uint8)
    for place, bits in enumerate(np.unpackbits(rest, count=count * left, bitorder="little").reshape(left, count)):
        octets[:, whole] |= bits << place
    return octets.view("<u8").reshape(-1).astype(np.uint64, copy=False)
