"""The idle baselines before and after a run, put together."""

from __future__ import annotations

import math
from dataclasses import replace

from powerlab.domain.budget import IDLE
from powerlab.measure.budget import Part, mean_of, scaled
from powerlab.measure.power import TotalEnergy
from powerlab.measure.record import IdleBaseline


def idle_around(before: IdleBaseline | None, after: IdleBaseline | None) -> TotalEnergy | None:
    """Return the idle energy that belongs to the run between two baselines; one of them will do, None without any.

    A run has the idle power of its own middle, which nobody saw; taken as the mean of both, it is off by at most half
    of their difference: a rectangle.
    """
    if before is None or after is None:
        found = before or after
        return None if found is None else found.energy
    one, other = before.energy, after.energy
    per_second = mean_of(scaled(one.parts, 1 / one.duration_s), scaled(other.parts, 1 / other.duration_s))
    drift_w = abs(one.power_w - other.power_w) / 2 / math.sqrt(3)
    duration_s = one.duration_s + other.duration_s
    return replace(
        one,
        energy_j=(one.power_w + other.power_w) / 2 * duration_s,
        duration_s=duration_s,
        parts=scaled((*per_second, Part(origin=IDLE, effect="drift", standard_uncertainty=drift_w)), duration_s),
    )
