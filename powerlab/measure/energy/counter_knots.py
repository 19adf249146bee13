"""Points on the true curve of an energy counter, derived from its readings and their delay.

A counter is renewed at its own pace. A reading that repeats the last one says nothing; one that differs was renewed at
most an update period ago and after the last reading. So the readings that differ are the knots of the curve, each half
of that time old and uncertain by as much, a rectangle. Between two knots the curve is taken as straight. How far it may
bend shows in how much the mean powers of neighbouring pieces differ, beyond what the knots' stated times explain. That
may be the power's doing, random as much within a piece as between pieces, so that the curve is a Brownian bridge
between its knots (M. Loève, *Probability Theory II*, section 41); or that of knots that are less punctual than stated.
Readings do not tell which, so each is taken for half of the variance.

A window begins and ends with an inference, and so often just where the load has a step. Such a step bends the curve in
one piece only, which the mean of all pieces does not show: it is looked for in the powers before and after that piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Trace
from powerlab.measure.energy.lag_correction import LONGEST_PERIODS, Lag

Floats = NDArray[np.float64]
_FEWEST = 4
_SQRT3, _SQRT12 = math.sqrt(3.0), math.sqrt(12.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knots:
    """Points of a counter's curve.

    Attributes:
        time_s: shape (n,), rising.
        value_j: shape (n,), rising.
        slopes_w: shape (n - 1,): the mean power between two knots.
        unsure_s: shape (n,): how far a knot's time may be off to either side.
        read_s: shape (m,), stamps of all readings.
        read_j: shape (m,), their values: what was read by a time is never more than the curve there, and what is read
            an update period later is never less.
        held_s: the update period.
        half_read_s: half of the time that a read takes.
        wander_w2s: how much the power varies within a piece: variance of the mean power of a second.
        rounding_j: the step of a reading, as far as it matters.
        lag: what readings are late by beyond the time until they are renewed.
    """

    time_s: Floats
    value_j: Floats
    slopes_w: Floats
    unsure_s: Floats
    read_s: Floats
    read_j: Floats
    held_s: float
    half_read_s: float
    wander_w2s: float
    rounding_j: float
    lag: Lag

    def at(self, time_s: Floats) -> Floats:
        """Return the curve in J at these times, within what the readings before and after allow."""
        place = self._place(time_s)
        straight_j = self.value_j[place] + self.slopes_w[place] * (time_s - self.time_s[place])
        return np.asarray(np.clip(straight_j, *self._allowed_j(time_s)))

    def _place(self, time_s: Floats) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(self.time_s, time_s, side="right") - 1, 0, self.time_s.size - 2)

    def _allowed_j(self, time_s: Floats) -> tuple[Floats, Floats]:
        before = np.searchsorted(self.read_s, time_s - self.half_read_s, side="right") - 1
        after = np.searchsorted(self.read_s, time_s + self.held_s + self.half_read_s, side="left")
        least_j = np.where(before >= 0, self.read_j[np.maximum(before, 0)], -np.inf)
        last = self.read_j.size - 1
        most_j = np.where(after <= last, self.read_j[np.minimum(after, last)] + self.rounding_j, np.inf)
        return least_j, most_j

    def uncertainty_j(self, time_s: float) -> float:
        """Return the standard uncertainty in J of the curve at a time: of its knots' times, and of its bends.

        It is never more than that of anything between the readings before and after.
        """
        place = int(self._place(np.array(time_s)))
        piece_s = float(self.time_s[place + 1] - self.time_s[place])
        share = (time_s - float(self.time_s[place])) / piece_s
        slope_w = float(self.slopes_w[place])
        times_j = [
            slope_w * part * float(unsure) / _SQRT3
            for part, unsure in ((1 - share, self.unsure_s[place]), (share, self.unsure_s[place + 1]))
        ]
        # Slopes that differ by late knots have three times a knot's variance: it shares both ends of its piece.
        bridge, late = share * (1 - share), ((1 - share) ** 2 + share**2) / 3
        bends_j = math.sqrt(self.wander_w2s * piece_s * max(0.0, bridge + late) / 2)
        around_w = self.slopes_w[max(0, place - 1)], self.slopes_w[min(place + 1, self.slopes_w.size - 1)]
        step_j = abs(float(around_w[1] - around_w[0])) * piece_s * max(0.0, bridge) / _SQRT3
        least_j, most_j = self._allowed_j(np.array(time_s))
        return min(math.hypot(*times_j, bends_j, step_j), float(most_j - least_j) / _SQRT12)


def knots_of(time_s: Floats, trace: Trace, window_s: float) -> Knots:
    """Return the knots of a counter's readings.

    Args:
        time_s: shape (n,), the readings' stamps on a clock that begins with the window.
        trace: the readings.
        window_s: how long the window is: how much the power varies, and how a reading is rounded, is looked at there.
    """
    rail, value_j = trace.rail, trace.value
    new = np.concatenate(([True], np.diff(value_j) > 0))
    if np.count_nonzero(new) < 2:
        new = np.ones(value_j.size, dtype=bool)
    apart_s = np.diff(time_s, prepend=time_s[0] - rail.update_period_s)[new]
    age_s = np.minimum(apart_s, rail.update_period_s) / 2
    knot_s, knot_j = time_s[new] - age_s, value_j[new]
    unsure_s = np.hypot(age_s, trace.read_cost_ns / 2e9)
    slopes_w = np.diff(knot_j) / np.diff(knot_s)
    inner = slice(*np.searchsorted(knot_s, (0.0, window_s)).tolist())
    if inner.stop - inner.start < _FEWEST:
        inner = slice(0, knot_s.size)
    pieces = slice(inner.start, inner.stop - 1)
    return Knots(
        time_s=knot_s,
        value_j=knot_j,
        slopes_w=slopes_w,
        unsure_s=unsure_s,
        read_s=time_s,
        read_j=value_j,
        held_s=rail.update_period_s,
        half_read_s=trace.read_cost_ns / 2e9,
        wander_w2s=_wander_w2s(knot_s[inner], slopes_w[pieces], unsure_s[inner]),
        rounding_j=min(
            rail.resolution, float(np.median(slopes_w[pieces]) * np.median(apart_s[inner] + rail.update_period_s))
        ),
        lag=_delay(trace),
    )


def _wander_w2s(knot_s: Floats, slopes_w: Floats, unsure_s: Floats) -> float:
    """Return the variance of the mean power of a piece times its length, less what the knots' own times make of it.

    Neighbouring slopes share a knot: its time counts twice in their difference, and the outer ones' once.
    """
    if slopes_w.size < 3:
        return 0.0
    pieces_s = np.diff(knot_s)
    seen = np.diff(slopes_w) ** 2 / 2
    times = (slopes_w[1:] * float(np.median(unsure_s)) / pieces_s[1:]) ** 2
    return max(0.0, float(np.mean(seen - times))) * float(np.mean(pieces_s))


def _delay(trace: Trace) -> Lag:
    """Return what readings are late by beyond their knots' age; a lag that was calibrated holds both."""
    rail, read_s = trace.rail, trace.read_cost_ns / 2e9 / _SQRT3
    held_s = rail.update_period_s / 2
    if rail.lag_error_s > 0:
        return Lag(mean_s=rail.lag_s - held_s, deviation_s=math.hypot(rail.lag_error_s, read_s), calibrated=True)
    middle_s = LONGEST_PERIODS / 2 * rail.update_period_s
    return Lag(mean_s=middle_s - held_s, deviation_s=math.hypot(middle_s / _SQRT3, read_s), calibrated=False)
