"""Which candidate is the fastest: they take turns, and one replaces the model's choice only if it wins beyond noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.codegen.convolutions.choosing import applicable, by_cost, expected_cycles
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.machine import Machine

Timer = Callable[[ConvShape, Sequence[Choice], Machine], NDArray[np.float64]]
"""Returns nanoseconds, shape (rounds, choices): in each round every choice had its turn."""

_HOPELESS = 2.0
"""Algorithms that the model expects to take so many times as long as the best are not tried."""
_LEAST_GAIN = 0.01
_STANDARD_ERRORS = 2.0
_ROUNDS_WON = 0.75


class Verdict(Struct, frozen=True, kw_only=True):
    """What timing one shape's candidates said.

    Attributes:
        choice: the winner.
        expected: the model's choice.
        gain: the winner's time over that of the model's choice, by the median of paired ratios; 1 where that won.
        expected_ns: median time of the model's choice.
    """

    choice: Choice
    expected: Choice
    gain: float
    expected_ns: float


def tune(shape: ConvShape, machine: Machine, timer: Timer, algorithm: str | None = None) -> Verdict:
    """Time the candidates of one shape.

    Args:
        shape: the convolution.
        machine: what to choose for.
        timer: takes the times.
        algorithm: the only one to try, because results are to stay what they are; None: all that are worth it.
    """
    choices = candidates(shape, machine, algorithm)
    times = timer(shape, choices, machine)
    best, gain = winner(times)
    if best:  # the luckiest of many looks faster than it is: it has to win once more, against the model's choice alone
        confirmed, gain = winner(timer(shape, [choices[0], choices[best]], machine))
        best *= confirmed
    return Verdict(choice=choices[best], expected=choices[0], gain=gain, expected_ns=float(np.median(times[:, 0])))


def candidates(shape: ConvShape, machine: Machine, algorithm: str | None = None) -> list[Choice]:
    """Return the choices worth a try, that of the model first."""
    alone = replace(machine, threads=1)
    usable = applicable(shape, machine)
    usable = [one for one in usable if one.name == algorithm] or usable
    costs = {one.name: expected_cycles(one, shape, alone) for one in usable}
    worth_it = [one for one in usable if costs[one.name] <= _HOPELESS * min(costs.values())]
    found = [choice for one in worth_it for choice in one.candidates(shape, machine)]
    expected = by_cost(machine)(shape)
    if expected in found:
        found.remove(expected)
        found.insert(0, expected)
    return found


def winner(times: NDArray[np.float64]) -> tuple[int, float]:
    """Return which column is the fastest beyond noise, else 0, and the median of its ratios to column 0."""
    best, gain = 0, 1.0
    ratios = times / times[:, :1]
    for column in range(1, times.shape[1]):
        ratio = float(np.median(ratios[:, column]))
        spread = float(np.median(np.abs(ratios[:, column] - ratio))) * 1.4826
        error = 1.2533 * spread / np.sqrt(len(ratios))  # of a median
        clear = ratio + _STANDARD_ERRORS * error < 1 - _LEAST_GAIN
        if ratio < gain and clear and np.mean(ratios[:, column] < 1) >= _ROUNDS_WON:
            best, gain = column, ratio
    return best, gain
