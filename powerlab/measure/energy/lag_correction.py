"""Lag correction: the delay of readings, and the energy of a window shifted by it.

A reading stamped *s* says what was at *s* minus its age. On average over the readings of a rail that is its lag: half
of what it averages, half the time until it is renewed, and its delay. Where a step of the load was watched, the rail
says its lag and the standard uncertainty of that; else the lag lies between nothing and one and a half update periods
(a value that is the mean of a whole period, and a whole one old when it is read), which is a rectangle around three
quarters of one. Its middle corrects the window (JCGM 100:2008, 3.2.4), and its width is propagated by trying it: the
energy of the window is computed at lags all over the distribution, so that what matters is how much the power that was
really seen differs at both ends, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Rail

_SQRT3 = math.sqrt(3.0)
LONGEST_PERIODS = 1.5
_PLACES = (np.arange(12) + 0.5) / 6 - 1.0
"""Middles of twelve equally likely parts of a rectangle from -1 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How much later than it happened something is read.

    Attributes:
        mean_s: the best figure.
        deviation_s: its standard uncertainty.
        calibrated: whether a step of the load showed it, and not only the sensor's statement.
    """

    mean_s: float
    deviation_s: float
    calibrated: bool

    @property
    def effect(self) -> str:
        """What its uncertainty is called in a budget: ``lag``, or ``edge`` where it is only a bound."""
        return "lag" if self.calibrated else "edge"


def lag_of(rail: Rail, read_cost_ns: int) -> Lag:
    """Return a rail's lag; where within its read a value is taken is unknown, too."""
    read_s = read_cost_ns / 2 / 1e9 / _SQRT3
    if rail.lag_error_s > 0:
        return Lag(mean_s=rail.lag_s, deviation_s=math.hypot(rail.lag_error_s, read_s), calibrated=True)
    middle_s = LONGEST_PERIODS / 2 * rail.update_period_s
    return Lag(mean_s=middle_s, deviation_s=math.hypot(middle_s / _SQRT3, read_s), calibrated=False)


def lagged_energy(energy_j: Callable[[NDArray[np.float64]], NDArray[np.float64]], lag: Lag) -> tuple[float, float]:
    """Return a window's energy in J at a lag, and the standard uncertainty that the lag's makes of it.

    Args:
        energy_j: gives the window's energy for lags in s.
        lag: the lag.
    """
    if not lag.deviation_s:
        return float(energy_j(np.array([lag.mean_s]))[0]), 0.0
    found_j = energy_j(np.concatenate(([lag.mean_s], lag.mean_s + _SQRT3 * lag.deviation_s * _PLACES)))
    return float(found_j[0]), float(np.sqrt(np.mean((found_j[1:] - found_j[0]) ** 2)))
