"""The answers of one input beside those of others, and how near they must be."""

from __future__ import annotations

from functools import cached_property

import numpy as np

TOLERANCE = 2e-3
"""Of the largest number; Winograd's algorithms are off by less than half of that."""

LARGEST = 1e18
"""Numbers beyond are near where float32 overflows on the way, or where integers wrap."""

MOVED = 1e-6
"""Of itself, which each number of an input is moved by to see what of an answer is rounding: ten steps of float32."""

MOVES = 4

LAST_DIGIT = 2.0**-24
"""Of numbers near 1, as most are on the way: log(exp(x)) - x may be 1e-8 for one and 7e-8 for another, and not move."""

ROUNDED = 10
"""An answer may be as many times as far away as its own moves it."""


class FindingError(Exception):
    """The engine did what it never should."""


class Comparison:
    """What a session answered, to be called with what somebody else did.

    Nobody's digits count in an answer that is the difference of two numbers that are nearly alike, as log(exp(x)) - x;
    such an answer moves as much when its inputs move in their last digits, or is itself within those of 1.
    """

    def __init__(self, session, inputs, found):
        self._session, self._inputs, self._found = session, inputs, found

    def __call__(self, expected, judge):
        """Raise FindingError where an output is further from ``expected`` than rounding explains."""
        for name, values in expected.items():
            found = self._found[name]
            if values.shape != found.shape:
                raise FindingError(f"the shape {found.shape} where {judge} has {values.shape}")
            wanted = values.astype(np.float64)
            if values.dtype.kind == "i":  # x86's answer for a float that is not an integer, which ONNX leaves open
                wanted = np.where(values == np.iinfo(values.dtype).min, found, wanted)
            if not np.all(np.abs(wanted) < LARGEST):
                continue
            scale = float(np.abs(wanted).max(initial=0)) or 1.0
            away = float(np.abs(found.astype(np.float64) - wanted).max(initial=0))
            if not away / scale < TOLERANCE and not away < ROUNDED * self._rounding[name]:
                raise FindingError(f"an answer {away / scale:.3g} of the largest number away from {judge}")

    @cached_property
    def _rounding(self):
        """How far each output of floats moves with its inputs' last digits, at least the last digit of 1."""
        generator = np.random.default_rng(1)
        moved = dict.fromkeys(self._found, LAST_DIGIT)
        for _ in range(MOVES):
            answers = self._session.run({name: _moved(values, generator) for name, values in self._inputs.items()})
            for name, values in self._found.items():
                if values.dtype.kind == "f":
                    distance = np.abs(answers[name].astype(np.float64) - values).max(initial=0)
                    moved[name] = max(moved[name], float(np.nan_to_num(distance)))
        return moved


def _moved(values, generator):
    if values.dtype.kind != "f":
        return values
    return (values * (1 + MOVED * generator.uniform(-1, 1, values.shape))).astype(values.dtype)
