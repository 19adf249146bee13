"""Columns of 64-bit integers as residuals of a predictor.

Sums wrap around at 2**64, so every column comes back. Two ways are tried. A *line*: the n-th number is an offset and n
times a slope, as the times of a thread are that wakes at every full period, late by what the machine does to it; with
slope 0, noise around a level. *Steps*: each is its predecessor and a usual step, as what drifts or counts is.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.protocol.codecs import rice

_HEAD = struct.Struct("<Bqq")
"""The way, and its two numbers: offset and slope, or the first number and the usual step; little-endian."""
_LINE, _STEPS = 0, 1
_FRACTION_BITS = 16
"""A slope is an integer of 2**-16: over the 65 536 numbers of a chunk it is off by one at most."""

_Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """A column: the way, its two numbers, and what is left."""

    way: int
    first: int
    second: int
    left: NDArray[np.uint64]


def pack(column: _Column) -> bytes:
    """Return a column, of at least one number, as bytes."""
    ways = (_line(column, 0), _line(column, _slope(column)), _steps(column))
    best = min(ways, key=lambda told: rice.cost_bits(told.left))
    return _HEAD.pack(best.way, best.first, best.second) + rice.pack(best.left)


def most_bytes(count: int) -> int:
    """Return how long a column of so many numbers may be."""
    return _HEAD.size + rice.most_bytes(count)


def unpack(data: bytes, count: int) -> _Column:
    """Return a column of so many numbers; raises ValueError or struct.error where the data holds something else."""
    way, first, second = _HEAD.unpack_from(data)
    if way not in (_LINE, _STEPS):
        raise ValueError(f"there is no way {way}")
    left = _signed(rice.unpack(data[_HEAD.size :], count if way == _LINE else count - 1))
    column = np.empty(count, dtype=np.int64)
    if way == _LINE:
        column[:] = left + first + _along(second, count)
        return column
    column[0] = first
    column[1:] = left + second
    return np.cumsum(column, dtype=np.int64)


def _line(column: _Column, slope: int) -> _Told:
    left = column - _along(slope, len(column))
    offset = _middle(left)
    return _Told(_LINE, offset, slope, _unsigned(left - offset))


def _steps(column: _Column) -> _Told:
    steps = np.diff(column)
    usual = _middle(steps)
    return _Told(_STEPS, int(column[0]), usual, _unsigned(steps - usual))


def _along(slope: int, count: int) -> _Column:
    return (np.arange(count, dtype=np.int64) * slope) >> _FRACTION_BITS


def _slope(column: _Column) -> int:
    """Return a slope that a few late numbers do not change: from the middle of one half to that of the other."""
    usual = _middle(np.diff(column))
    half = len(column) // 2
    if half == 0:
        return 0
    beside = column - np.arange(len(column), dtype=np.int64) * usual
    risen = _middle(beside[-half:]) - _middle(beside[:half])
    return _wrapped((usual << _FRACTION_BITS) + (risen << _FRACTION_BITS) // (len(column) - half))


def _middle(column: _Column) -> int:
    """Return the median, one of the numbers; 0 where there is none."""
    return int(np.partition(column, len(column) // 2)[len(column) // 2]) if len(column) else 0


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _unsigned(column: _Column) -> NDArray[np.uint64]:
    """Return 0, 1, 2, 3, ... for 0, -1, 1, -2, ..."""
    return ((column << 1) ^ (column >> 63)).view(np.uint64)


def _signed(numbers: NDArray[np.uint64]) -> _Column:
    return (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
