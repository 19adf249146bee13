"""Where the mean of a series changed: binary segmentation, with a permutation test at every cut.

The cut of a series is where the cumulative sum of its deviations, weighted by sqrt(n / (k (n - k))), is furthest from 0
(E. S. Page, Biometrika 42, 1955; A. Sen and M. S. Srivastava, Annals of Statistics 3, 1975). It is a change if hardly
any random order of the same values has a cut as deep, which supposes nothing of how the values scatter, only that their
order says nothing while nothing changes (as E-divisive does; D. Matteson and N. James, JASA 109, 2014). Both sides of a
change are searched in turn (L. Yu. Vostrikova, Soviet Mathematics Doklady 24, 1981). A series without a change is
tested once, so the level is the probability of a false alarm in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.01
"""Probability of a false alarm, over all series that are looked at together."""
_SHORTEST = 2
"""Values on either side of a change: one alone may be an outlier."""
_ORDERS = 9999
"""Random orders at least; more where the level is so small that it takes more to tell."""
_FIRST = 250
_AT_A_TIME = 500_000
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change between ``values[index - 1]`` and ``values[index]``, and the level at which it was found."""

    index: int
    level: float


def change_points(values: Sequence[float], level: float = LEVEL) -> tuple[ChangePoint, ...]:
    """Return the changes of a series' mean, first to last.

    Args:
        values: in the order of time.
        level: the probability of finding a change where there is none.
    """
    series = np.asarray(values, dtype=np.float64)
    random = np.random.default_rng(0)  # the same answer whenever it is asked
    found: list[ChangePoint] = []
    waiting = [(0, len(series))]
    while waiting:
        start, end = waiting.pop()
        cut = _cut(series[start:end], level, random)
        if cut is not None:
            middle = start + cut.index
            found.append(ChangePoint(middle, cut.level))
            waiting += [(start, middle), (middle, end)]
    return tuple(sorted(found, key=lambda one: one.index))


def fewest_values(level: float) -> int:
    """Return how many values a series has at least in which any change can be found at that level."""
    count = 2 * _SHORTEST
    while 2 / math.comb(count, count // 2) > level:
        count += 1
    return count


def _cut(series: NDArray[np.float64], level: float, random: np.random.Generator) -> ChangePoint | None:
    if len(series) < fewest_values(level):
        return None
    depths = _depths(series[np.newaxis, :])[0]
    place = int(np.argmax(depths))
    deepest = depths[place] * (1 - _ROUNDING)
    if deepest <= 0:
        return None
    as_deep, done = 1, 0
    orders = max(_ORDERS, math.ceil(2 / level))
    while done < orders:
        rows = min(max(_FIRST, done), orders - done, max(1, _AT_A_TIME // len(series)))
        shuffled = random.permuted(np.tile(series, (rows, 1)), axis=1)
        as_deep += int(np.count_nonzero(_depths(shuffled).max(axis=1) >= deepest))
        done += rows
        if as_deep > level * (orders + 1):  # whatever the others are
            return None
    return ChangePoint(place + _SHORTEST, as_deep / (orders + 1))


def _depths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how deep each cut of each row is, from the cut after :data:`_SHORTEST` values on."""
    count = rows.shape[1]
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, _SHORTEST - 1 : count - _SHORTEST]
    before = np.arange(_SHORTEST, count - _SHORTEST + 1)
    depths: NDArray[np.float64] = np.abs(sums) * np.sqrt(count / (before * (count - before)))
    return depths
