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
_GRID, _ZOOMS = 24, 4
_RANGE = 100
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
    window_s = _fitted_s(edges, longest_s)
    # Leaving out one edge after the other (the jackknife: Quenouille, 1956; Tukey, 1958).
    others_s = np.array([_fitted_s(edges[:one] + edges[one + 1 :], longest_s) for one in range(len(edges))])
    scatter_s = math.sqrt((len(edges) - 1) / len(edges) * float(((others_s - others_s.mean()) ** 2).sum()))
    shortest_s, widest_s = _range_s(edges, longest_s, window_s)
    width_s = math.hypot(widest_s - shortest_s, read_s)
    return Averaging((shortest_s + widest_s) / 2, math.hypot(scatter_s, width_s / 2 / math.sqrt(3)))


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


def _fitted_s(edges: Sequence[tuple[_Floats, _Floats]], longest_s: float) -> float:
    """Return the window whose line is nearest to the values: least squares over window and delay, on finer grids."""
    windows, delays = (0.0, longest_s), (0.0, longest_s)
    best_window_s = best_delay_s = 0.0
    for _ in range(_ZOOMS):
        window_s, delay_s = np.meshgrid(np.linspace(*windows, _GRID), np.linspace(*delays, _GRID), indexing="ij")
        misfit = _misfit(edges, window_s, delay_s)
        row, column = np.unravel_index(int(misfit.argmin()), misfit.shape)
        best_window_s, best_delay_s = float(window_s[row, column]), float(delay_s[row, column])
        windows, delays = (_around(best, bounds) for best, bounds in ((best_window_s, windows), (best_delay_s, delays)))
    return best_window_s


def _range_s(edges: Sequence[tuple[_Floats, _Floats]], longest_s: float, best_s: float) -> tuple[float, float]:
    """Return the shortest and the longest window that fit as well as the best one, by the scatter around its line.

    Where no value came while the line climbed, every shorter window fits as well, and no edge left out shows it.
    """
    window_s = np.append(best_s, np.linspace(0.0, longest_s, _RANGE))[:, None]
    first_s, reach_s = np.zeros_like(window_s), longest_s
    for _ in range(_ZOOMS):
        delay_s = first_s + np.linspace(0.0, reach_s, _GRID)
        misfits = _misfit(edges, window_s, delay_s)
        step_s = reach_s / (_GRID - 1)
        nearest_s = np.take_along_axis(delay_s, misfits.argmin(axis=1)[:, None], axis=1)
        first_s, reach_s = nearest_s - 3 * step_s, 6 * step_s
    misfit = misfits.min(axis=1)
    count = sum(shares.size for _, shares in edges)
    as_good = window_s[misfit <= misfit[0] * (1 + 1 / max(count - 2, 1))]
    return float(as_good.min()), float(as_good.max())


def _misfit(edges: Sequence[tuple[_Floats, _Floats]], window_s: _Floats, delay_s: _Floats) -> _Floats:
    """Return how far the values are from the line of each window and delay, which have one shape: a sum of squares."""
    offset_s = np.concatenate([offset for offset, _ in edges])
    share = np.concatenate([shares for _, shares in edges])
    line = (offset_s - delay_s[..., None]) / np.maximum(window_s[..., None], 1e-6)
    return np.asarray(((np.clip(line, 0.0, 1.0) - share) ** 2).sum(axis=-1))


def _around(best: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the neighbourhood of a grid's best point: three steps to either side."""
    reach = 3 * (bounds[1] - bounds[0]) / (_GRID - 1)
    return max(0.0, best - reach), best + reach
