"""Energy of one rail in a window, with its uncertainty budget (JCGM 100:2008, the GUM).

Every contribution is a standard uncertainty in J. Bounds become standard uncertainties as half-widths of rectangles
(divided by the square root of 3). What each one stands for:

- ``gain``: the rail's stated relative error; the same for every sample, so it does not average out.
- ``quantisation``: half a step of the reading; it may be the same for every sample, so it does not average out either.
- ``offset``: a constant error of every reading of a power rail; it does not average out.
- ``sampling``: what happened between two samples of a power rail; neighbours' differences are taken as noise.
- ``edge``: where exactly the window's ends lie between readings. The two ends are added, not squared.
- ``read-time``: the stamp lies half-way through a read, so it may be half a read off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace

_SQRT3 = math.sqrt(3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RailEnergy:
    """Energy of one rail in a window.

    Attributes:
        energy_j: the estimate.
        gain_j: standard uncertainty from the gain error, which rails of one source share.
        other_j: every other contribution by name, standard uncertainties.
    """

    energy_j: float
    gain_j: float
    other_j: dict[str, float]

    @property
    def independent_j(self) -> float:
        """Root of the sum of squares of all contributions but the gain."""
        return math.hypot(*self.other_j.values())


def covers(trace: Trace, start_ns: int, end_ns: int) -> bool:
    """Whether the trace has a sample on or before the start and one on or after the end."""
    return trace.time_ns.size >= 2 and int(trace.time_ns[0]) <= start_ns and int(trace.time_ns[-1]) >= end_ns


def rail_energy(trace: Trace, start_ns: int, end_ns: int) -> RailEnergy:
    """Return the energy between two times in J.

    An energy counter gives the difference of its values, a power rail the trapezoid; both interpolate linearly at the
    window's ends.

    Raises:
        ValueError: the trace does not cover the window (:func:`covers`), or the window is empty.
    """
    if end_ns <= start_ns or not covers(trace, start_ns, end_ns):
        raise ValueError(f"the trace of {trace.rail.key} does not cover the window")
    if trace.rail.quantity is RailQuantity.ENERGY:
        energy_j, other_j = _from_counter(trace, start_ns, end_ns)
    else:
        energy_j, other_j = _from_power(trace, start_ns, end_ns)
    return RailEnergy(energy_j=energy_j, gain_j=trace.rail.relative_error * abs(energy_j) / _SQRT3, other_j=other_j)


def _from_counter(trace: Trace, start_ns: int, end_ns: int) -> tuple[float, dict[str, float]]:
    at_start, at_end = np.interp([start_ns, end_ns], trace.time_ns, trace.value)
    energy_j = float(at_end - at_start)
    mean_power_w = energy_j / ((end_ns - start_ns) / 1e9)
    edge_j = _counter_edge_j(trace, start_ns, float(at_start)) + _counter_edge_j(trace, end_ns, float(at_end))
    return energy_j, {
        "quantisation": 2 * (trace.rail.resolution / 2) / _SQRT3,
        "edge": edge_j / _SQRT3,
        "read-time": 2 * mean_power_w * trace.read_cost_ns / 2 / 1e9 / _SQRT3,
    }


def _counter_edge_j(trace: Trace, time_ns: int, estimate_j: float) -> float:
    """Return a bound of how far the counter's true value at a time may lie from the estimate.

    The last reading at or before the time is never too large; the first one read a whole update period after the time
    is never too small. Where the trace ends before that, its last reading is extended by the mean power.
    """
    before = int(np.searchsorted(trace.time_ns, time_ns, side="right")) - 1
    needed_ns = time_ns + round(trace.rail.update_period_s * 1e9)
    after = int(np.searchsorted(trace.time_ns, needed_ns, side="left"))
    if after < trace.time_ns.size:
        upper = float(trace.value[after])
    else:
        mean_w = float(trace.value[-1] - trace.value[0]) / (float(trace.time_ns[-1] - trace.time_ns[0]) / 1e9)
        upper = float(trace.value[-1]) + mean_w * (needed_ns - int(trace.time_ns[-1])) / 1e9
    return max(estimate_j - float(trace.value[before]), upper - estimate_j, 0.0)


def _from_power(trace: Trace, start_ns: int, end_ns: int) -> tuple[float, dict[str, float]]:
    inside = (trace.time_ns > start_ns) & (trace.time_ns < end_ns)
    at_start, at_end = np.interp([start_ns, end_ns], trace.time_ns, trace.value)
    time_s = np.concatenate(([0.0], (trace.time_ns[inside] - start_ns) / 1e9, [(end_ns - start_ns) / 1e9]))
    power_w = np.concatenate(([at_start], trace.value[inside], [at_end]))
    update_s = trace.rail.update_period_s
    steps_w = np.abs(np.diff(power_w))
    # Sampled faster than it updates, a sensor hides when within its period the step happened.
    apart_s = np.where(steps_w > 0, np.maximum(np.diff(time_s), update_s), 0.0)
    stale_s = update_s + trace.read_cost_ns / 2 / 1e9
    edge_j = sum(_swing_w(trace, time, update_s) for time in (start_ns, end_ns)) * stale_s
    window_s = (end_ns - start_ns) / 1e9
    return float(np.trapezoid(power_w, time_s)), {
        "quantisation": trace.rail.resolution / 2 * window_s / _SQRT3,
        "offset": trace.rail.offset * window_s / _SQRT3,
        "sampling": float(np.sqrt(np.sum((steps_w * apart_s) ** 2) / 2)),
        "edge": edge_j / _SQRT3,
    }


def _swing_w(trace: Trace, time_ns: int, update_s: float) -> float:
    """Return how much the power moved between the samples around a time, one update period to either side."""
    reach_ns = round(update_s * 1e9)
    first = max(0, int(np.searchsorted(trace.time_ns, time_ns - reach_ns, side="right")) - 1)
    last = min(trace.time_ns.size - 1, int(np.searchsorted(trace.time_ns, time_ns + reach_ns, side="left")))
    near: NDArray[np.float64] = trace.value[first : last + 1]
    return float(near.max() - near.min())
