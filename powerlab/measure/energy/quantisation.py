"""Quantisation uncertainty of a power rail's energy.

A reading lies half a step at most from what was sensed, but as long as the power stays what it is every sample is off
by the same: that does not average out. Where the power moves between readings, each of them has a rounding of its own,
which knows nothing of the others'. So a window's error is the sum over the different readings of the time that each was
shown times a rectangle of a step (B. Widrow and I. Kollár, *Quantization Noise*, Cambridge 2008, on when roundings know
nothing of each other). A power that never moves has one, which is the full bound. One that passes through a reading,
from its neighbour on one side to that on the other, was rounded up and down alike there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_SQRT12 = math.sqrt(12.0)


def level_bounds_j(
    time_s: NDArray[np.float64], value_w: NDArray[np.float64], window_s: tuple[float, float], step_w: float
) -> tuple[float, float]:
    """Return standard uncertainties in J: of the reading shown longest, which is a rectangle, and of all others.

    Args:
        time_s: shape (n,), when samples were taken.
        value_w: shape (n,).
        window_s: start and end.
        step_w: the step of a reading; 0 where unknown.
    """
    if step_w <= 0:
        return 0.0, 0.0
    middles = (time_s[1:] + time_s[:-1]) / 2
    shown_s = np.diff(np.clip(np.concatenate(([-np.inf], middles, [np.inf])), *window_s))
    steps = np.round(value_w / step_w)
    shown_s[_passed_through(steps)] = 0.0
    _, level = np.unique(steps, return_inverse=True)
    together_s = np.sort(np.bincount(level, weights=shown_s))
    return (
        float(together_s[-1]) * step_w / _SQRT12,
        float(np.sqrt(np.sum(together_s[:-1] ** 2))) * step_w / _SQRT12,
    )


def _passed_through(steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which samples belong to a stay at a reading between its two neighbours, from one of them to the other."""
    begins = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1))
    lasting = np.diff(np.append(begins, steps.size))
    moved = np.diff(steps[begins])
    through = np.zeros(begins.size, dtype=bool)
    through[1:-1] = (moved[1:] == moved[:-1]) & (np.abs(moved[1:]) == 1)
    return np.repeat(through, lasting)
