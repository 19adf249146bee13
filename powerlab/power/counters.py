"""Arithmetic on sampled counters: unwrapping, and finding how often a value really changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Trace


def unwrap(raw: NDArray[np.int64], wraps_at: int | None) -> tuple[NDArray[np.int64], int]:
    """Turn readings of a cumulative counter into one that never decreases.

    A smaller reading means that the counter passed its end once, where that makes a step of at most half its range: the
    shortest known ranges last minutes, and samples lie seconds apart at most. Else, and where the range is unknown, the
    counter was set back (by a suspension, or with its driver), and how much was counted in between is unknown: the
    readings end there.

    Args:
        raw: int64, shape (n,), in the counter's own units, as read.
        wraps_at: after how many units the counter starts again at 0; None where unknown.

    Returns:
        The readings, int64, shape (m,) with m <= n, starting at the first one as read, and how many were cut off.
    """
    steps = np.diff(raw)
    backwards = steps < 0
    if not backwards.any():
        return raw.copy(), 0
    if wraps_at is not None:
        steps[backwards] += wraps_at
        backwards &= (steps < 0) | (steps > wraps_at // 2)
    kept = int(np.argmax(backwards)) + 1 if backwards.any() else len(raw)
    return np.concatenate([raw[:1], raw[0] + np.cumsum(steps[: kept - 1])]), len(raw) - kept


def observed_update_period_s(trace: Trace) -> float:
    """Return the median time between two changes of a rail's value in s, 0 where it changed less than three times.

    The value cannot be seen to change faster than it is sampled, so a result near the sample period is an upper bound.
    """
    changed_at_ns = trace.time_ns[1:][np.diff(trace.value) != 0]
    if len(changed_at_ns) < 3:
        return 0.0
    return float(np.median(np.diff(changed_at_ns))) * 1e-9
