"""Combination of the idle baselines before and after a run."""

from __future__ import annotations

import math
from dataclasses import replace

from powerlab.domain.budget import IDLE
from powerlab.measure.energy.budget import Part, mean_of, scaled
from powerlab.measure.energy.total import TotalEnergy


def idle_around(before: TotalEnergy | None, after: TotalEnergy | None) -> TotalEnergy | None:
    """Return the idle energy that belongs to the run between two baselines; one of them will do, None without any.

    A run has the idle power of its own middle, which nobody saw; taken as the mean of both, it is off by at most half
    of their difference: a rectangle.
    """
    if before is None or after is None:
        return before or after
    per_second = mean_of(scaled(before.parts, 1 / before.duration_s), scaled(after.parts, 1 / after.duration_s))
    drift_w = abs(before.power_w - after.power_w) / 2 / math.sqrt(3)
    duration_s = before.duration_s + after.duration_s
    return replace(
        before,
        energy_j=(before.power_w + after.power_w) / 2 * duration_s,
        duration_s=duration_s,
        parts=scaled((*per_second, Part(origin=IDLE, effect="drift", standard_uncertainty=drift_w)), duration_s),
    )
