"""Energy of one rail in a window, with its uncertainty budget (JCGM 100:2008, the GUM).

Every contribution is a standard uncertainty in J. What each one stands for:

- ``gain``: the rail's stated relative error; the same for every sample, so it does not average out.
- ``offset``: a constant error of every reading of a power rail; it does not average out.
- ``quantisation``: half a step of the reading that a power rail showed longest; ``rounding``: those of its other
  readings, or those of a counter at both ends (:mod:`powerlab.measure.energy.quantisation`).
- ``sampling``: what happened between two samples of a power rail, or of a counter whose sensor looks only part of the
  time (:mod:`powerlab.measure.energy.between_samples`).
- ``gap``: the same where samples are missing.
- ``edge``: where the window's ends lie between a sensor's readings; ``lag``: the same where the lag was calibrated
  (:mod:`powerlab.measure.energy.lag_correction`, :mod:`powerlab.measure.energy.counter_knots`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace
from powerlab.measure.energy.between_samples import gap_j, sampling_j
from powerlab.measure.energy.counter_knots import Knots, knots_of
from powerlab.measure.energy.lag_correction import lag_of, lagged_energy
from powerlab.measure.energy.quantisation import level_bounds_j

_SQRT3 = math.sqrt(3.0)
_SQRT6 = math.sqrt(6.0)
_FAR_S = 1e6
_FEWEST_SLOPES = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RailEnergy:
    """Energy of one rail in a window.

    Attributes:
        energy_j: the estimate.
        gain_j: standard uncertainty from the gain error, which rails of one source share.
        other_j: every other contribution by name, standard uncertainties.
        by_slopes_j: of a counter, the same energy as the trapezoid of its slope, for comparison; None where it has too
            few values, and of a power rail, which has no other integral.
    """

    energy_j: float
    gain_j: float
    other_j: dict[str, float]
    by_slopes_j: float | None = None

    @property
    def independent_j(self) -> float:
        """Root of the sum of squares of all contributions but the gain."""
        return math.hypot(*self.other_j.values())


def covers(trace: Trace, start_ns: int, end_ns: int) -> bool:
    """Whether the trace has a sample on or before the start and one on or after the end."""
    return trace.time_ns.size >= 2 and int(trace.time_ns[0]) <= start_ns and int(trace.time_ns[-1]) >= end_ns


def rail_energy(trace: Trace, start_ns: int, end_ns: int) -> RailEnergy:
    """Return the energy between two times in J.

    An energy counter gives the difference of its values, a power rail the trapezoid; both where the window lies on the
    sensor's own clock, later by its lag.

    Args:
        trace: the rail's samples.
        start_ns: the window's start on CLOCK_MONOTONIC.
        end_ns: its end.

    Raises:
        ValueError: the trace does not cover the window (:func:`covers`), or the window is empty.
    """
    if end_ns <= start_ns or not covers(trace, start_ns, end_ns):
        raise ValueError(f"the trace of {trace.rail.key} does not cover the window")
    counts = trace.rail.quantity is RailQuantity.ENERGY
    # A clock that begins at the window's start: an uptime of months in ns fits no float64.
    time_s = (trace.time_ns - start_ns) / 1e9
    window_s = (end_ns - start_ns) / 1e9
    energy_j, other_j, by_slopes_j = (_from_counter if counts else _from_power)(trace, time_s, window_s)
    return RailEnergy(
        energy_j=energy_j,
        gain_j=trace.rail.relative_error * abs(energy_j) / _SQRT3,
        other_j=other_j,
        by_slopes_j=by_slopes_j,
    )


def _from_power(trace: Trace, time_s: Floats, window_s: float) -> tuple[float, dict[str, float], float | None]:
    """Integrate samples; what lies before the first and after the last one is as they are."""
    lag = lag_of(trace.rail, trace.read_cost_ns)
    curve = Trapezoid(time_s, trace.value)
    energy_j, edge_j = lagged_energy(lambda lag_s: curve.upto(window_s + lag_s) - curve.upto(lag_s), lag)
    shown_s = (lag.mean_s, window_s + lag.mean_s)
    widest_j, rest_j = level_bounds_j(time_s, trace.value, shown_s, trace.rail.resolution)
    return (
        energy_j,
        {
            "offset": trace.rail.offset * window_s / _SQRT3,
            "quantisation": widest_j,
            "rounding": rest_j,
            "sampling": sampling_j(time_s, trace.value, shown_s, trace.rail.update_period_s),
            "gap": gap_j(time_s, trace.value, shown_s, trace.rail.update_period_s),
            lag.effect: edge_j,
        },
        None,
    )


class Trapezoid:
    """The integral of samples that are joined by straight lines, from the first one on."""

    def __init__(self, time_s: Floats, power_w: Floats) -> None:
        self._time_s = np.concatenate(([time_s[0] - _FAR_S], time_s, [time_s[-1] + _FAR_S]))
        self._power_w = np.concatenate((power_w[:1], power_w, power_w[-1:]))
        steps_j = np.diff(self._time_s) * (self._power_w[1:] + self._power_w[:-1]) / 2
        steps_j[0] = 0.0
        self._done_j = np.concatenate(([0.0], np.cumsum(steps_j)))

    def upto(self, time_s: Floats) -> Floats:
        """Return the energy in J up to these times."""
        place = np.clip(np.searchsorted(self._time_s, time_s, side="right") - 1, 0, self._time_s.size - 2)
        into_s = time_s - self._time_s[place]
        rise = (self._power_w[place + 1] - self._power_w[place]) / (self._time_s[place + 1] - self._time_s[place])
        # Before the first sample the sum begins: the area is negative there, and counted from the sample.
        done_j = np.where(place == 0, -self._power_w[0] * (self._time_s[1] - self._time_s[0]), self._done_j[place])
        return np.asarray(done_j + self._power_w[place] * into_s + rise * into_s**2 / 2)


def _from_counter(trace: Trace, time_s: Floats, window_s: float) -> tuple[float, dict[str, float], float | None]:
    knots = knots_of(time_s, trace, window_s)
    lag = knots.lag
    energy_j, late_j = lagged_energy(lambda lag_s: knots.at(window_s + lag_s) - knots.at(lag_s), lag)
    edges_j = [knots.uncertainty_j(at_s + lag.mean_s) for at_s in (0.0, window_s)]
    found = {"rounding": knots.rounding_j / _SQRT6, "edge": math.hypot(*edges_j)}
    found[lag.effect] = math.hypot(found.get(lag.effect, 0.0), late_j)
    if trace.rail.seen_share < 1 and knots.slopes_w.size >= _FEWEST_SLOPES:
        # It counts what it saw, so its slopes are samples like those of a power rail.
        middles_s = (knots.time_s[1:] + knots.time_s[:-1]) / 2
        shown_s = (lag.mean_s, window_s + lag.mean_s)
        found["sampling"] = sampling_j(middles_s, knots.slopes_w, shown_s, trace.rail.update_period_s)
    return energy_j, found, _slopes_j(knots, lag.mean_s, window_s)


def _slopes_j(knots: Knots, lag_s: float, window_s: float) -> float | None:
    """Return the trapezoid over the counter's mean power between its values; None for fewer than three values."""
    if knots.time_s.size < 3:
        return None
    curve = Trapezoid((knots.time_s[1:] + knots.time_s[:-1]) / 2, knots.slopes_w)
    ends_j = curve.upto(np.array([lag_s, window_s + lag_s]))
    return float(ends_j[1] - ends_j[0])
