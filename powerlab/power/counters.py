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


_SHORT = 0.1
_ALIKE = 1.5


def observed_update_period_s(trace: Trace) -> float | None:
    """Return how often a rail's value is renewed in s, from the times at which it was seen to change.

    Where every new value differs from the last one, that is the median time between two changes. A sensor with a coarse
    step often gives the same value again, so its changes lie a whole number of periods apart: hence the median of the
    short times alone, those up to half as long again as the shortest tenth. The value cannot be seen to change faster
    than it is read, so a result near the time between two reads is an upper bound.

    Returns:
        The period; None where the value changed less than three times, or the short times do not recur, so that they
        are chance and no period.
    """
    changed_at_ns = trace.time_ns[1:][trace.value[1:] != trace.value[:-1]]
    if len(changed_at_ns) < 3:
        return None
    apart_ns = np.diff(changed_at_ns)
    short_ns = apart_ns[apart_ns <= _ALIKE * np.quantile(apart_ns, _SHORT, method="lower")]
    return float(np.median(short_ns)) * 1e-9 if len(short_ns) >= 2 else None
