"""Energy of one rail in a window, with its uncertainty budget (JCGM 100:2008, the GUM).

Every contribution is a standard uncertainty in J. Bounds become standard uncertainties as half-widths of rectangles
(divided by the square root of 3). What each one stands for:

- ``gain``: the rail's stated relative error; the same for every sample, so it does not average out.
- ``quantisation``: half a step of the reading; it may be the same for every sample, so it does not average out either.
- ``offset``: a constant error of every reading of a power rail; it does not average out.
- ``sampling``: what happened between two samples of a power rail; neighbours' differences are taken as noise.
- ``edge``: where exactly the window's ends lie between readings, each of which is older than its stamp says by up to
  an update period, and off by up to half a read. The two ends are added, not squared.
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
    at_start, at_end = _values_at(trace, start_ns, end_ns)
    edge_j = _counter_edge_j(trace, start_ns, at_start) + _counter_edge_j(trace, end_ns, at_end)
    return at_end - at_start, {
        "quantisation": 2 * (trace.rail.resolution / 2) / _SQRT3,
        "edge": edge_j / _SQRT3,
    }


def _values_at(trace: Trace, start_ns: int, end_ns: int) -> tuple[float, float]:
    """Interpolate at both ends, on a clock that begins at the start: an uptime of months in ns fits no float64."""
    at_start, at_end = np.interp([0.0, float(end_ns - start_ns)], trace.time_ns - start_ns, trace.value)
    return float(at_start), float(at_end)


def _counter_edge_j(trace: Trace, time_ns: int, estimate_j: float) -> float:
    """Return a bound of how far the counter's true value at a time may lie from the estimate.

    The last reading that ended by the time is never too large; the first one that began a whole update period after it
    is never too small. Where the trace does not reach that far, it is extended by the greatest power seen in it.
    """
    half_read_ns = trace.read_cost_ns / 2
    from_ns, until_ns = time_ns - half_read_ns, time_ns + round(trace.rail.update_period_s * 1e9) + half_read_ns
    before = int(np.searchsorted(trace.time_ns, from_ns, side="right")) - 1
    after = int(np.searchsorted(trace.time_ns, until_ns, side="left"))
    if before >= 0:
        lower = float(trace.value[before])
    else:
        lower = float(trace.value[0]) - _greatest_power_w(trace) * (int(trace.time_ns[0]) - from_ns) / 1e9
    if after < trace.time_ns.size:
        upper = float(trace.value[after])
    else:
        upper = float(trace.value[-1]) + _greatest_power_w(trace) * (until_ns - int(trace.time_ns[-1])) / 1e9
    return max(estimate_j - lower, upper - estimate_j, 0.0)


def _greatest_power_w(trace: Trace) -> float:
    """Return the greatest mean power between two readings of a counter that are an update period apart, or more."""
    apart_ns = max(1, round(trace.rail.update_period_s * 1e9))
    later = np.searchsorted(trace.time_ns, trace.time_ns + apart_ns, side="left")
    first = np.flatnonzero(later < trace.time_ns.size)
    if not first.size:
        first, later = np.array([0]), np.array([trace.time_ns.size - 1])
    moved_j = trace.value[later[first]] - trace.value[first]
    return float((moved_j / (trace.time_ns[later[first]] - trace.time_ns[first])).max()) * 1e9


def _from_power(trace: Trace, start_ns: int, end_ns: int) -> tuple[float, dict[str, float]]:
    inside = (trace.time_ns > start_ns) & (trace.time_ns < end_ns)
    at_start, at_end = _values_at(trace, start_ns, end_ns)
    time_s = np.concatenate(([0.0], (trace.time_ns[inside] - start_ns) / 1e9, [(end_ns - start_ns) / 1e9]))
    power_w = np.concatenate(([at_start], trace.value[inside], [at_end]))
    update_s = trace.rail.update_period_s
    steps_w = np.abs(np.diff(power_w))
    # Sampled faster than it updates, a sensor hides when within its period the step happened.
    apart_s = np.where(steps_w > 0, np.maximum(np.diff(time_s), update_s), 0.0)
    window_s = (end_ns - start_ns) / 1e9
    # What all samples are late by moves the whole curve: in comes what was before the start, out goes what was last.
    net_j = abs(at_end - at_start) * _age_s(trace)
    edge_j = net_j + sum(_power_edge_j(trace, time_ns) for time_ns in (start_ns, end_ns))
    return float(np.trapezoid(power_w, time_s)), {
        "quantisation": trace.rail.resolution / 2 * window_s / _SQRT3,
        "offset": trace.rail.offset * window_s / _SQRT3,
        "sampling": float(np.sqrt(np.sum((steps_w * apart_s) ** 2) / 2)),
        "edge": edge_j / _SQRT3,
    }


def _age_s(trace: Trace) -> float:
    """Return a bound of how old a sample is: half of what it averages, a period until it is renewed, half a read."""
    return 1.5 * trace.rail.update_period_s + trace.read_cost_ns / 2 / 1e9


def _power_edge_j(trace: Trace, time_ns: int) -> float:
    """Return a bound of what a sample's age and the time between two samples make unknown at an end of the window.

    How far the power moved is looked for as far to either side as a sample may reach back.
    """
    reach_ns = round(2 * trace.rail.update_period_s * 1e9) + trace.read_cost_ns / 2
    first = max(0, int(np.searchsorted(trace.time_ns, time_ns - reach_ns, side="right")) - 1)
    last = min(trace.time_ns.size - 1, int(np.searchsorted(trace.time_ns, time_ns + reach_ns, side="left")))
    near: NDArray[np.float64] = trace.value[first : last + 1]
    return float(near.max() - near.min()) * (_age_s(trace) + _apart_s(trace, time_ns) / 2)


def _apart_s(trace: Trace, time_ns: int) -> float:
    """Return the time between the last sample at or before a time and the first one at or after it."""
    before = int(np.searchsorted(trace.time_ns, time_ns, side="right")) - 1
    after = int(np.searchsorted(trace.time_ns, time_ns, side="left"))
    return float(trace.time_ns[after] - trace.time_ns[before]) / 1e9
