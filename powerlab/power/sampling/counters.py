"""Arithmetic on sampled counters: unwrapping, and how often a value really changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Trace

_FEWEST_STEPS = 10
_WIDEST_STEP = 100
"""Power comes and goes, and a reading may be late; but no counter's step is a hundred times its widest other one."""


def unwrap(
    raw: NDArray[np.int64], wraps_at: int | None, time_ns: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], int]:
    """Turn readings of a cumulative counter into one that never decreases.

    A smaller reading means that the counter passed its end once, where that makes a step of at most half its range: the
    shortest known ranges last minutes, and samples lie seconds apart at most. Nor may it be a hundred times the widest
    other step, once there are ten of them to compare it with. Else, and where the range is unknown, the counter was set
    back (by a suspension, or with its driver), and how much was counted in between is unknown: the readings end there.

    Args:
        raw: int64, shape (n,), in the counter's own units, as read.
        wraps_at: after how many units the counter starts again at 0; None where unknown.
        time_ns: int64, shape (n,): when it was read; a longer time allows a wider step. None for evenly.

    Returns:
        The readings, int64, shape (m,) with m <= n, starting at the first one as read, and how many were cut off.
    """
    steps = np.diff(raw)
    backwards = steps < 0
    if not backwards.any():
        return raw.copy(), 0
    if wraps_at is not None:
        widest = _widest_step(steps, time_ns)
        steps[backwards] += wraps_at
        backwards &= (steps < 0) | (steps > wraps_at // 2) | (steps > widest)
    kept = int(np.argmax(backwards)) + 1 if backwards.any() else len(raw)
    return np.concatenate([raw[:1], raw[0] + np.cumsum(steps[: kept - 1])]), len(raw) - kept


def _widest_step(steps: NDArray[np.int64], time_ns: NDArray[np.int64] | None) -> NDArray[np.float64] | float:
    """Return how wide each step may be, going by the steps that are no wraps."""
    forward = steps[steps > 0]
    if len(forward) < _FEWEST_STEPS:
        return np.inf
    widest = _WIDEST_STEP * float(forward.max())
    if time_ns is None:
        return widest
    apart_ns = np.diff(time_ns)
    allowed: NDArray[np.float64] = widest * np.maximum(1.0, apart_ns / np.median(apart_ns))
    return allowed


def rising(value: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which readings of a cumulative counter without an end can be used.

    A single reading below an earlier one is an error of that reading. Where the next one is below, too, the counter was
    set back, and the readings end there.
    """
    falls = value < np.maximum.accumulate(value)
    set_back = np.flatnonzero(falls[:-1] & falls[1:])
    if set_back.size:
        falls[set_back[0] :] = True
    return ~falls


_SHORT = 0.1
_ALIKE = 1.5


def observed_update_period_s(trace: Trace) -> float | None:
    """Return how often a rail's value is renewed in s, from the times at which it was seen to change.

    Where every new value differs from the last one, that is the median time between two changes. A sensor with a coarse
    step often gives the same value again, so its changes lie an integer of periods apart: hence the median of the
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
