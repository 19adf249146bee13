"""Element types that numpy does not have: bfloat16, floats of 8 and 4 bits, integers of 4 and 2.

The engine holds such floats in float32 and such integers in int8 or uint8, which have all their values.

Sources: https://onnx.ai/onnx/technical/float8.html, float4.html and int4.html; P. Micikevicius et al., "FP8 Formats for
Deep Learning", https://arxiv.org/abs/2209.05433; OCP Microscaling Formats (MX) Specification 1.0.
"""

from __future__ import annotations

import math
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[Any]


class Past(Enum):
    """What a float type has past its largest number."""

    INFINITY = "INFINITY"
    NAN = "NAN"
    LARGEST = "LARGEST"


class NarrowFloat(Struct, frozen=True, kw_only=True):
    """A float type: a sign, ``exponent_bits``, ``fraction_bits``.

    Attributes:
        name: as ONNX calls it.
        bias: what is subtracted from the exponent's bits.
        largest: its largest number.
        past: what follows on that.
        unsigned_zero: whether it has no -0: those bits are not-a-number, the only one.
    """

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    largest: float
    past: Past
    unsigned_zero: bool = False

    @property
    def bits(self) -> int:
        """Return how many bits an element has."""
        return 1 + self.exponent_bits + self.fraction_bits

    def rounded(self, values: Array, saturate: bool = True) -> Array:
        """Return the nearest numbers of the type, as float32; even where two are as near.

        Not-a-number becomes -0 in a type that has none.

        Args:
            values: floats.
            saturate: whether what lies past the largest number becomes that; bfloat16 never saturates.
        """
        given = values.astype(np.float64)
        _, exponents = np.frexp(given)
        with np.errstate(all="ignore"):
            step = np.ldexp(1.0, np.maximum(exponents - 1, 1 - self.bias) - self.fraction_bits)
            made = np.where(np.isfinite(given), np.rint(given / step) * step, given)
            over = np.abs(made) > self.largest
            made = np.where(over, np.copysign(self._past(saturate), made), made)
            made = np.where(np.isnan(given) & (self.past == Past.LARGEST), -0.0, made)
        return (made + 0.0 if self.unsigned_zero else made).astype(np.float32)

    def _past(self, saturate: bool) -> float:
        if self.past == Past.LARGEST or (saturate and self.bits <= 8):
            return self.largest
        return math.inf if self.past == Past.INFINITY else math.nan

    def rounding(self, saturate: bool) -> tuple[int, int, int, int]:
        """Return the numbers of the native kernel that rounds: see ``narrow_f``."""
        largest, past = (int(np.float32(value).view(np.uint32)) for value in (self.largest, self._past(saturate)))
        flags = int(self.unsigned_zero) << 32 | int(self.past == Past.LARGEST) << 33
        return self.fraction_bits, 1 - self.bias, largest, past | flags

    def decoded(self, codes: Array) -> Array:
        """Return the float32 numbers that bits stand for."""
        if self.bits == 16:
            return (codes.astype(np.uint32) << 16).view(np.float32)
        return _table(self)[codes]


class NarrowInteger(Struct, frozen=True, kw_only=True):
    """An integer type of fewer than 8 bits, in two's complement where it is signed."""

    name: str
    bits: int
    signed: bool

    @property
    def limits(self) -> tuple[int, int]:
        """Return the smallest and the largest number."""
        half = 1 << (self.bits - 1)
        return (-half, half - 1) if self.signed else (0, 2 * half - 1)

    def decoded(self, codes: Array) -> Array:
        """Return the numbers that bits stand for, in int8 or uint8."""
        if not self.signed:
            return codes.astype(np.uint8)
        shift = 8 - self.bits
        return (codes.astype(np.uint8) << shift).view(np.int8) >> shift


Narrow = NarrowFloat | NarrowInteger


@cache
def _table(kind: NarrowFloat) -> Array:
    """Return the number of every code of a type of up to 8 bits."""
    codes = np.arange(1 << kind.bits)
    exponents = codes >> kind.fraction_bits & ((1 << kind.exponent_bits) - 1)
    fractions = codes & ((1 << kind.fraction_bits) - 1)
    normal = exponents > 0
    sizes = np.ldexp(
        fractions + (normal << kind.fraction_bits).astype(np.float64),
        np.maximum(exponents, 1) - kind.bias - kind.fraction_bits,
    )
    infinite = (sizes == _after_largest(kind)) & (kind.past == Past.INFINITY)
    sizes = np.where(infinite, np.inf, np.where(sizes > kind.largest, np.nan, sizes))
    values = np.where(codes >> (kind.bits - 1) == 1, -sizes, sizes)
    if kind.unsigned_zero:
        values[1 << (kind.bits - 1)] = np.nan
    return values.astype(np.float32)


def _after_largest(kind: NarrowFloat) -> float:
    """Return the number that the code after the largest number's would be."""
    exponent = math.frexp(kind.largest)[1] - 1
    return kind.largest + math.ldexp(1.0, exponent - kind.fraction_bits)


BFLOAT16 = NarrowFloat(
    name="bfloat16",
    exponent_bits=8,
    fraction_bits=7,
    bias=127,
    largest=float(np.uint32(0x7F7F0000).view(np.float32)),
    past=Past.INFINITY,
)

NARROW: dict[int, Narrow] = {
    16: BFLOAT16,
    17: NarrowFloat(name="float8e4m3fn", exponent_bits=4, fraction_bits=3, bias=7, largest=448.0, past=Past.NAN),
    18: NarrowFloat(
        name="float8e4m3fnuz",
        exponent_bits=4,
        fraction_bits=3,
        bias=8,
        largest=240.0,
        past=Past.NAN,
        unsigned_zero=True,
    ),
    19: NarrowFloat(name="float8e5m2", exponent_bits=5, fraction_bits=2, bias=15, largest=57344.0, past=Past.INFINITY),
    20: NarrowFloat(
        name="float8e5m2fnuz",
        exponent_bits=5,
        fraction_bits=2,
        bias=16,
        largest=57344.0,
        past=Past.NAN,
        unsigned_zero=True,
    ),
    21: NarrowInteger(name="uint4", bits=4, signed=False),
    22: NarrowInteger(name="int4", bits=4, signed=True),
    23: NarrowFloat(name="float4e2m1", exponent_bits=2, fraction_bits=1, bias=1, largest=6.0, past=Past.LARGEST),
    25: NarrowInteger(name="uint2", bits=2, signed=False),
    26: NarrowInteger(name="int2", bits=2, signed=True),
}
"""ONNX element type number → type."""


def held(kind: Narrow) -> np.dtype[Any]:
    """Return the numpy type in which the engine holds such values."""
    if isinstance(kind, NarrowFloat):
        return np.dtype(np.float32)
    return np.dtype(np.int8 if kind.signed else np.uint8)


def unpacked(data: Array, kind: Narrow, count: int) -> Array:
    """Return the codes of ``count`` elements: of less than 8 bits, several lie in a byte, the lowest bits first."""
    if kind.bits >= 8:
        return data[:count]
    shifts = np.arange(0, 8, kind.bits, dtype=np.uint8)
    return (data[:, None] >> shifts & np.uint8((1 << kind.bits) - 1)).reshape(-1)[:count]


def stored_count(kind: Narrow, count: int) -> int:
    """Return how many numbers of its storage type ``count`` elements take."""
    return count if kind.bits >= 8 else -(-count * kind.bits // 8)


def storage(kind: Narrow) -> np.dtype[Any]:
    """Return the numpy type in which a file keeps codes: bytes, or two of them."""
    return np.dtype("<u2" if kind.bits == 16 else "u1")
