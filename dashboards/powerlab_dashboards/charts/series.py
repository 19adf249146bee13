"""Traces as power curves: difference counters, add rails, and thin long curves without losing peaks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace

_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Power over time.

    Attributes:
        name: the rail's key, or ``total``.
        time_s: shape (n,): seconds since the timed window began.
        power_w: shape (n,): W.
        differenced: True if the sensor counts energy and the power is the counter's slope; each value then covers
            the time since the previous sample.
    """

    name: str
    time_s: NDArray[np.float64]
    power_w: NDArray[np.float64]
    differenced: bool


def rail_curve(trace: Trace, origin_ns: int) -> Curve | None:
    """Return a rail's power curve; None if the trace is too short.

    A counter may be read more often than it updates. Only the first reading and those at which it changed are used, so
    that an update is not drawn as a spike between zeros.
    """
    time_ns, value = trace.time_ns, trace.value
    if trace.rail.quantity is RailQuantity.POWER:
        if len(time_ns) == 0:
            return None
        return Curve(name=trace.rail.key, time_s=_seconds(time_ns, origin_ns), power_w=value, differenced=False)
    moved = np.flatnonzero(np.diff(value) > 0) + 1
    kept = np.concatenate([[0], moved]).astype(np.int64)
    if len(kept) < 2:
        return None
    power_w = np.diff(value[kept]) / (np.diff(time_ns[kept]) / _NS_PER_S)
    return Curve(
        name=trace.rail.key,
        time_s=_seconds(time_ns[kept][1:], origin_ns),
        power_w=power_w,
        differenced=True,
    )


def total_curve(formula: Sequence[str], curves: Sequence[Curve]) -> Curve | None:
    """Return the sum of the rails in ``formula``; None unless every one of them has a curve.

    The rails are sampled one after another; each is interpolated to the stamps of the formula's first rail (linearly,
    or held for a counter), inside the time that all of them cover.
    """
    by_name = {curve.name: curve for curve in curves}
    parts = [by_name[key] for key in formula if key in by_name]
    if not parts or len(parts) != len(formula):
        return None
    start = max(part.time_s[0] for part in parts)
    end = min(part.time_s[-1] for part in parts)
    time_s = parts[0].time_s[(parts[0].time_s >= start) & (parts[0].time_s <= end)]
    if len(time_s) == 0:
        return None
    power_w = np.sum([_at(part, time_s) for part in parts], axis=0)
    return Curve(name="total", time_s=time_s, power_w=power_w, differenced=all(part.differenced for part in parts))


def thin(curve: Curve, limit: int) -> Curve:
    """Return at most ``limit`` samples: the minimum and maximum of each of ``limit // 2`` equal segments."""
    length = len(curve.time_s)
    if length <= limit:
        return curve
    edges = np.linspace(0, length, max(limit // 2, 1) + 1).astype(np.int64)
    kept: set[int] = set()
    for start, stop in itertools.pairwise(edges):
        stretch = curve.power_w[start:stop]
        kept |= {int(start + stretch.argmin()), int(start + stretch.argmax())}
    index = np.array(sorted(kept), dtype=np.int64)
    return Curve(
        name=curve.name,
        time_s=curve.time_s[index],
        power_w=curve.power_w[index],
        differenced=curve.differenced,
    )


def _seconds(time_ns: NDArray[np.int64], origin_ns: int) -> NDArray[np.float64]:
    return np.asarray((time_ns - origin_ns) / _NS_PER_S, dtype=np.float64)


def _at(curve: Curve, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    if curve.differenced:
        index = np.searchsorted(curve.time_s, time_s, side="left").clip(max=len(curve.power_w) - 1)
        return np.asarray(curve.power_w[index], dtype=np.float64)
    return np.asarray(np.interp(time_s, curve.time_s, curve.power_w), dtype=np.float64)


def mean_power_w(trace: Trace, window_ns: tuple[int, int]) -> float | None:
    """Return a rail's mean power between the readings inside the window; None if there are fewer than two.

    For a counter this is the difference over the elapsed time; power readings are integrated by the trapezoidal rule.
    This is for display only: the run's figures also correct for the window's edges.
    """
    inside = (trace.time_ns >= window_ns[0]) & (trace.time_ns <= window_ns[1])
    time_s, value = trace.time_ns[inside] / _NS_PER_S, trace.value[inside]
    if len(value) < 2:
        return None
    length_s = float(time_s[-1] - time_s[0])
    if trace.rail.quantity is RailQuantity.ENERGY:
        return float(value[-1] - value[0]) / length_s
    return float(np.trapezoid(value, time_s)) / length_s
