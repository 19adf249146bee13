"""How long a sensor averages, from a load that is switched on and off at known times.

Each new value is taken for the mean power over a window that ended a while before it was seen. Laid over all edges, the
values then climb along a straight line from one level to the next, and the line is as long as the window. Yang, Adamek
and Armour found in this way that A100 and H100 look at 25 ms of every 100 ms (arXiv 2312.02741). A counter's values are
what it added since the one before: one that sees everything has a window as long as its update period, one that adds up
what a part-time sensor saw has a shorter one. A first-order filter has no window; its values climb as along a line of
some two and a half time constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace

_SETTLED = 0.5
"""The share of a level from which on its values show the level alone."""
_WINDOWS, _DELAYS = 80, 400
_FINER = 24
_FEWEST_VALUES = 3
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Averaging:
    """A window in s, and its standard uncertainty."""

    window_s: float
    error_s: float


def averaging_of(trace: Trace, edges_ns: Sequence[int], until_ns: int) -> Averaging | None:
    """Return a sensor's averaging window; None where too few new values came, or they came faster than they were read.

    Args:
        trace: what was recorded while the load went on and off.
        edges_ns: when it went on, off, on... on CLOCK_MONOTONIC.
        until_ns: when the level after the last edge ended.
    """
    read_s = float(np.median(np.diff(trace.time_ns))) / 1e9
    at_ns, value_w = _new_values(trace)
    if at_ns.size < 2 or float(np.median(np.diff(at_ns))) / 1e9 < 2 * read_s:
        return None
    edges = [*_edges(at_ns, value_w, edges_ns, until_ns)]
    if len(edges) < 4:
        return None
    longest_s = _SETTLED * float(np.diff([*edges_ns, until_ns]).min()) / 1e9
    lines = _lines(edges, longest_s)
    misfit = _misfit(edges, lines)
    # Leaving out one edge after the other (the jackknife: Quenouille, 1956; Tukey, 1958).
    others_s = np.array([lines.window_s[(misfit - _misfit([edge], lines)).argmin()] for edge in edges])
    scatter_s = math.sqrt((len(edges) - 1) / len(edges) * float(((others_s - others_s.mean()) ** 2).sum()))
    # What follows one edge is as early or late as that edge, so that edges count here, and not values.
    as_good_s = lines.window_s[misfit <= misfit.min() * (1 + 1 / (len(edges) - 2))]
    width_s = math.hypot(float(np.ptp(as_good_s)), read_s)
    # Of values at odd times each falls into the window with a chance of its share in the period: that none of so many
    # did says no more, were the edges known as badly as that.
    unseen_s = float(np.median(np.diff(at_ns))) / 1e9 / (2 * len(edges))
    middle_s = (float(as_good_s.min()) + float(as_good_s.max())) / 2
    return Averaging(middle_s, math.hypot(scatter_s, width_s / 2 / math.sqrt(3), unseen_s))


def _new_values(trace: Trace) -> tuple[NDArray[np.int64], _Floats]:
    """Return when new values were first seen, and the power in W that each stands for."""
    new = np.flatnonzero(np.diff(trace.value)) + 1
    at_ns, value = trace.time_ns[new], trace.value[new].astype(np.float64)
    if trace.rail.quantity is RailQuantity.POWER:
        return at_ns, value
    apart_s = np.diff(at_ns) / 1e9
    period_s = float(np.median(apart_s)) if apart_s.size else 1.0
    # When the counter moved is known to a read alone; that it did so a whole number of periods later is known better.
    return at_ns[1:], np.diff(value) / (np.maximum(1.0, np.round(apart_s / period_s)) * period_s)


def _edges(
    at_ns: NDArray[np.int64], value_w: _Floats, edges_ns: Sequence[int], until_ns: int
) -> list[tuple[_Floats, _Floats]]:
    """Return for each usable edge when values came after it, in s, and how far each was from one level to the next."""
    bounds = [int(at_ns[0]), *edges_ns, until_ns]
    found = []
    for begin, edge, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        before = value_w[(at_ns >= edge - (1 - _SETTLED) * (edge - begin)) & (at_ns < edge)]
        after = value_w[(at_ns >= edge + _SETTLED * (end - edge)) & (at_ns < end)]
        if min(before.size, after.size) < _FEWEST_VALUES:
            continue
        level_w, next_w = float(np.median(before)), float(np.median(after))
        near = (at_ns >= edge) & (at_ns < end)
        if next_w != level_w:
            found.append(((at_ns[near] - edge) / 1e9, (value_w[near] - level_w) / (next_w - level_w)))
    return found


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines from one level to the next, as arrays of one length: how long they climb, and when they begin to, in s."""

    window_s: _Floats
    delay_s: _Floats


def _lines(edges: Sequence[tuple[_Floats, _Floats]], longest_s: float) -> _Lines:
    """Return lines of every window and delay, closer for short windows, and close around the one nearest to the values.

    A line that climbs between two values misses as little wherever it does so: steps and plateaus, on which a search
    that follows a slope stops too early. So all of them are tried.
    """
    windows_s = longest_s * np.linspace(0.0, 1.0, _WINDOWS) ** 2
    delays_s = np.linspace(0.0, longest_s, _DELAYS)
    coarse = _crossed(windows_s, delays_s)
    best = int(_misfit(edges, coarse).argmin())
    window, delay = divmod(best, _DELAYS)
    fine = _crossed(_around(windows_s, window), _around(delays_s, delay))
    return _Lines(np.append(coarse.window_s, fine.window_s), np.append(coarse.delay_s, fine.delay_s))


def _crossed(windows_s: _Floats, delays_s: _Floats) -> _Lines:
    window_s, delay_s = np.meshgrid(windows_s, delays_s, indexing="ij")
    return _Lines(window_s.ravel(), delay_s.ravel())


def _around(grid: _Floats, best: int) -> _Floats:
    """Return numbers between the neighbours of one of a grid."""
    return np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], _FINER)


def _misfit(edges: Sequence[tuple[_Floats, _Floats]], lines: _Lines) -> _Floats:
    """Return how far the values are from each line: a sum of squares."""
    misfit = np.zeros_like(lines.window_s)
    window_s = np.maximum(lines.window_s, 1e-6)
    for offsets_s, shares in edges:
        for offset_s, share in zip(offsets_s, shares, strict=True):
            misfit += (np.clip((offset_s - lines.delay_s) / window_s, 0.0, 1.0) - share) ** 2
    return misfit
