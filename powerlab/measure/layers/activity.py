"""Switching activity of each step on a simulated board, so that its layers draw different power.

On real processors, code that waits for memory switches less than code that multiplies. A simulated board is told so
by the steps' arithmetic intensity: a chosen curve, as everything on a simulated board is. The curve is scaled so that
the mean over an inference is 1: the whole draws what it always draws there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_LEAST, _MOST = 0.6, 1.4
_HALF_WAY_FLOPS_PER_BYTE = 10.0


class Arithmetic(Protocol):
    """What some step does."""

    @property
    def flops(self) -> float:
        """Floating-point operations."""

    @property
    def bytes_moved(self) -> float:
        """Bytes to and from memory."""


def activities(work: Sequence[Arithmetic], step_ns: NDArray[np.float64] | NDArray[np.int64]) -> tuple[float, ...]:
    """Return each step's switching as a multiple of what the whole has on the mean.

    Args:
        work: what the steps do.
        step_ns: how long each of them takes in an inference, shape (steps,).
    """
    intensity = np.array([step.flops / max(1, step.bytes_moved) for step in work])
    wanted = _LEAST + (_MOST - _LEAST) * intensity / (intensity + _HALF_WAY_FLOPS_PER_BYTE)
    return tuple(float(value) for value in wanted * step_ns.sum() / (wanted * step_ns).sum())
