"""Lag of a rail's readings, from a load that is switched on and off at known times.

Between two edges of the load the power is level, and the energy read so far is a straight line. A sensor that is late
draws the line of the next level later: where the lines of two levels meet lies behind the edge by the mean delay of the
sensor's response, whatever its shape is. That is the area between the true step and the one that was read, over the
height of the step (the first moment of the impulse response), and just what an energy between two moments is shifted
by. It holds the filter, half of the averaging window, and half an update period, which a value is old on average.

The edges must come at odd times: a load whose period is a multiple of the sensor's would always be read at the same
phase (Yang, Adamek and Armour, *Part-time Power Measurements*, 2023, arXiv:2312.02741).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.statistics import NORMAL_95, student_95
from powerlab.measure.lag.averaging import averaging_of
from powerlab.power.sampling.counters import observed_update_period_s

SETTLING = 0.5
"""The share of every level that is left to the sensor to come to rest."""
_FEWEST_EDGES = 4
_CLEAR = 5.0
"""A step counts as seen where it is so many of its standard errors high."""
_FEWEST_READINGS = 4
_BINS = 200

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RailLag:
    """What the edges of a load showed of one rail.

    Attributes:
        rail: the rail, as it was described then.
        lag_s: how old what a reading says is on average; None where the rail does not show the load.
        lag_error_s: the standard uncertainty of that.
        rise_s: how long the mean response takes from 10 % to 90 % of the step; None for a counter, and where it is lost
            in noise.
        update_period_s: how often the value was seen to change; None where that cannot be told.
        averaging_s: the window over which it averages; None where that cannot be told.
        averaging_error_s: the standard uncertainty of that.
        step_w: the mean height of the step.
        edges: how many edges were used.
        problem: why there is no lag, as a sentence; empty where there is one.
    """

    rail: Rail
    lag_s: float | None = None
    lag_error_s: float = 0.0
    rise_s: float | None = None
    update_period_s: float | None = None
    averaging_s: float | None = None
    averaging_error_s: float = 0.0
    step_w: float = 0.0
    edges: int = 0
    problem: str = ""


def rail_lag(trace: Trace, edges_ns: Sequence[int], until_ns: int) -> RailLag:
    """Return how late a rail is.

    Args:
        trace: what was recorded: from one level's length before the first edge until ``until_ns``.
        edges_ns: when the load went on, off, on... on CLOCK_MONOTONIC.
        until_ns: when the level after the last edge ended.
    """
    rail = trace.rail
    if len(trace.time_ns) < _FEWEST_READINGS:
        return RailLag(rail=rail, problem=f"{rail.key} gave no readings to speak of.")
    if np.all(trace.value == trace.value[0]):
        return RailLag(rail=rail, problem=f"{rail.key} stood still while the load went on and off.")
    seen_s = observed_update_period_s(trace)
    heights_w, areas_j, signs = _steps(trace, edges_ns, until_ns)
    count = len(heights_w)
    if count < _FEWEST_EDGES or not {1.0, -1.0} <= set(signs.tolist()):
        problem = f"{rail.key} has too few readings between the edges of the load."
        return RailLag(rail=rail, update_period_s=seen_s, edges=count, problem=problem)
    step_w = float(heights_w.mean())
    if step_w <= _CLEAR * float(heights_w.std(ddof=1)) / math.sqrt(count):
        problem = f"{rail.key} does not follow the load."
        return RailLag(rail=rail, update_period_s=seen_s, step_w=step_w, edges=count, problem=problem)
    lag_s, edges_error_s = _delay(heights_w, areas_j, signs)
    averaging = averaging_of(trace, edges_ns, until_ns)
    return RailLag(
        rail=rail,
        lag_s=lag_s,
        lag_error_s=math.hypot(edges_error_s, _reading_error_s(trace)),
        rise_s=_rise_s(trace, edges_ns, until_ns) if rail.quantity is RailQuantity.POWER else None,
        update_period_s=seen_s,
        averaging_s=None if averaging is None else averaging.window_s,
        averaging_error_s=0.0 if averaging is None else averaging.error_s,
        step_w=step_w,
        edges=count,
    )


def _steps(trace: Trace, edges_ns: Sequence[int], until_ns: int) -> tuple[_Floats, _Floats, _Floats]:
    """Return each usable edge's height in W, the area between true and read step in J, and 1 for on, -1 for off.

    Both are positive where the power followed the load.
    """
    start_ns = int(trace.time_ns[0])
    time_s = (trace.time_ns - start_ns) / 1e9
    energy_j = trace.value - trace.value[0]
    if trace.rail.quantity is RailQuantity.POWER:
        steps_j = (trace.value[1:] + trace.value[:-1]) / 2 * np.diff(time_s)
        energy_j = np.concatenate(([0.0], np.cumsum(steps_j)))
    bounds_s = (np.array([*edges_ns, until_ns], dtype=np.int64) - start_ns) / 1e9
    lengths_s = np.diff(bounds_s)
    # The level before the first edge was rest for at least as long as the one after it.
    before = _level(time_s, energy_j, bounds_s[0] - SETTLING * lengths_s[0], bounds_s[0])
    found = []
    for number, (edge_s, end_s) in enumerate(itertools.pairwise(bounds_s)):
        after = _level(time_s, energy_j, edge_s + SETTLING * (end_s - edge_s), end_s)
        if before is not None and after is not None:
            sign = 1.0 if number % 2 == 0 else -1.0
            (power_before_w, middle_before_s, middle_before_j) = before
            (power_after_w, middle_after_s, middle_after_j) = after
            at_edge_before_j = middle_before_j + power_before_w * (edge_s - middle_before_s)
            at_edge_after_j = middle_after_j + power_after_w * (edge_s - middle_after_s)
            found.append((sign * (power_after_w - power_before_w), sign * (at_edge_before_j - at_edge_after_j), sign))
        before = after
    heights_w, areas_j, signs = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return heights_w, areas_j, signs


def _level(time_s: _Floats, energy_j: _Floats, from_s: float, until_s: float) -> tuple[float, float, float] | None:
    """Return the line through a level's energy: its slope in W and its middle in s and J; None for too few readings."""
    first, last = np.searchsorted(time_s, [from_s, until_s], side="right")
    if last - first < _FEWEST_READINGS:
        return None
    times_s, joules = time_s[first:last], energy_j[first:last]
    middle_s, middle_j = float(times_s.mean()), float(joules.mean())
    apart_s = times_s - middle_s
    return float((apart_s * (joules - middle_j)).sum() / (apart_s**2).sum()), middle_s, middle_j


def _delay(heights_w: _Floats, areas_j: _Floats, signs: _Floats) -> tuple[float, float]:
    """Return the mean delay of both kinds of edges in s, and its standard uncertainty.

    A kind's delay is its whole area over its whole height, so that a step that is lost in noise has little to say. The
    uncertainty has the scatter of the edges, made wider for few of them by Student's t, and half the difference of the
    two kinds as a rectangle: clocks that rise slowly and fall at once are no lag of the sensor.
    """
    delays_s, scatters_s = [], []
    for sign in (1.0, -1.0):
        height_w, area_j = heights_w[signs == sign], areas_j[signs == sign]
        delay_s = float(area_j.sum() / height_w.sum())
        residual_j = area_j - delay_s * height_w
        count = len(height_w)
        deviation_j = float(np.sqrt((residual_j**2).sum() / max(count - 1, 1)))
        wider = student_95(max(count - 1, 1)) / NORMAL_95
        scatters_s.append(wider * deviation_j / math.sqrt(count) / abs(float(height_w.mean())))
        delays_s.append(delay_s)
    difference_s = abs(delays_s[0] - delays_s[1]) / 2 / math.sqrt(3)
    return math.fsum(delays_s) / 2, math.hypot(math.hypot(*scatters_s) / 2, difference_s)


def _reading_error_s(trace: Trace) -> float:
    """Return the standard uncertainty of where between two readings, and within its read, a value was taken.

    Readings that lock with the sensor's updates see each of them equally late, so that no number of edges averages it
    away: a rectangle as wide as the time between two readings.
    """
    apart_s = float(np.median(np.diff(trace.time_ns))) / 1e9
    return math.hypot(apart_s, trace.read_cost_ns / 1e9) / 2 / math.sqrt(3)


def _rise_s(trace: Trace, edges_ns: Sequence[int], until_ns: int) -> float | None:
    """Return the time from 10 % to 90 % of the mean response to all edges, laid one over the other."""
    bounds_ns = [*edges_ns, until_ns]
    shortest_ns = int(np.diff(bounds_ns).min())
    offsets_s, shares = [], []
    for number, edge_ns in enumerate(edges_ns):
        near = (trace.time_ns >= edge_ns - shortest_ns // 4) & (trace.time_ns < edge_ns + shortest_ns)
        offset_s = (trace.time_ns[near] - edge_ns) / 1e9
        value_w = trace.value[near]
        early, late = value_w[offset_s < 0], value_w[offset_s > SETTLING * shortest_ns / 1e9]
        if not (early.size and late.size):
            continue
        sign = 1.0 if number % 2 == 0 else -1.0
        offsets_s.append(offset_s)
        shares.append(sign * (value_w - early.mean()))
    if not offsets_s:
        return None
    offset_s, share_w = np.concatenate(offsets_s), np.concatenate(shares)
    height_w = share_w[offset_s > SETTLING * shortest_ns / 1e9].mean()
    edges_s = np.linspace(offset_s.min(), offset_s.max(), _BINS + 1)
    which = np.clip(np.digitize(offset_s, edges_s) - 1, 0, _BINS - 1)
    counts = np.bincount(which, minlength=_BINS)
    filled = counts > 0
    mean = np.bincount(which, weights=share_w, minlength=_BINS)[filled] / counts[filled] / height_w
    return _from_10_to_90(((edges_s[1:] + edges_s[:-1]) / 2)[filled], mean)


def _from_10_to_90(time_s: _Floats, share: _Floats) -> float | None:
    """Return the time between the last bin below 10 % and the first one above 90 %, around the middle of the step."""
    above_half = np.flatnonzero(share >= 0.5)
    if not above_half.size:
        return None
    middle = int(above_half[0])
    low, high = np.flatnonzero(share[:middle] <= 0.1), np.flatnonzero(share[middle:] >= 0.9)
    if not (low.size and high.size):
        return None
    return float(time_s[middle + high[0]] - time_s[low[-1]])
