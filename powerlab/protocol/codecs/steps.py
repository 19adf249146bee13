"""Values as integer multiples of a step, if exact: a reading is a register's count times a unit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

_EXACT_BELOW = float(2**53)
"""Integers up to here are exact as floats."""
_PROBE = 64
"""Values looked at before all are."""


class Form(IntEnum):
    """How a value follows from an integer."""

    BITS = 0
    """The integer's bits are the value's, as IEEE 754 has them."""
    TIMES = 1
    """The value is the integer times the unit."""
    BY = 2
    """The value is the integer by the unit."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an integer stands for.

    Attributes:
        form: how the value follows from it.
        unit: what it is multiplied with or divided by.
        multiple: what it is multiplied with before, as an integer: readings may be steps of many units.
    """

    form: Form
    unit: float = 1.0
    multiple: int = 1


_UNITS = ((Form.BY, 1e9), (Form.TIMES, 1e-6), (Form.TIMES, 1e-3), (Form.TIMES, 1e-9))
"""Decimal numbers of up to nine places, as texts and divisions give them, and the kernel's µW, mW and nW as its sources
multiply them: the same number in another order of rounding may differ in its last bit."""


def find_step(value: NDArray[np.float64], resolution: float) -> Step:
    """Return a step of which all values are integers, bit for bit; their own bits where none is known.

    Args:
        value: shape (n,), at least one.
        resolution: one more unit to try; 0 where none is known.
    """
    hint = ((Form.TIMES, resolution),) if 0 < resolution < 1e9 else ()
    for form, unit in (*_UNITS, *hint):
        step = Step(form=form, unit=unit)
        if _holds(value[:: 1 + len(value) // _PROBE], step) and _holds(value, step):
            return Step(form=form, unit=unit, multiple=max(1, int(np.gcd.reduce(to_whole(value, step)))))
    return Step(form=Form.BITS)


def to_whole(value: NDArray[np.float64], step: Step) -> NDArray[np.int64]:
    """Return the integers that values are by a step of :func:`find_step`."""
    if step.form is Form.BITS:
        return np.ascontiguousarray(value, dtype=np.float64).view(np.int64)
    return np.rint(_in_units(value, step)).astype(np.int64) // step.multiple


def from_whole(whole: NDArray[np.int64], step: Step) -> NDArray[np.float64]:
    """Return the values that integers stand for."""
    if step.form is Form.BITS:
        return whole.view(np.float64)
    count = (whole * step.multiple).astype(np.float64)
    with np.errstate(all="ignore"):  # a damaged unit gives values that are refused with their summary
        return count * step.unit if step.form is Form.TIMES else count / step.unit


def _in_units(value: NDArray[np.float64], step: Step) -> NDArray[np.float64]:
    return value / step.unit if step.form is Form.TIMES else value * step.unit


def _holds(value: NDArray[np.float64], step: Step) -> bool:
    """Return whether values are whole units, bit for bit: -0.0, infinities and what is not a number never are."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.all(np.abs(_in_units(value, step)) < _EXACT_BELOW):
            return False
    again = from_whole(to_whole(value, step), step)
    return bool(np.array_equal(again.view(np.int64), np.ascontiguousarray(value).view(np.int64)))
