"""Warnings before a sweep: times too short for its sensors, temperatures that nothing reads."""

from __future__ import annotations

import math

from powerlab.domain.sweep import SweepPlan
from powerlab.measure.recording.rails import Meter
from powerlab.measure.validity import MIN_UPDATES_FLAGGED, MIN_UPDATES_VOID
from powerlab.throttling.zones import Zones

_SPARE_UPDATES = 1
"""A window rarely begins just as a value comes."""


def advice(plan: SweepPlan, meter: Meter) -> str:
    """Return sentences on what the plan asks for and the sensors cannot give; empty where they can give everything."""
    return " ".join(sentence for sentence in (_on_times(plan, meter), _on_cooling(plan, meter)) if sentence)


def _on_cooling(plan: SweepPlan, meter: Meter) -> str:
    if plan.cool_down_s <= 0 or Zones(meter.sysroot).names:
        return ""
    return "No thermal zone can be read here, so no run waits until the device is as cool as it was at the first one."


def enough_s(period_s: float) -> float:
    """Return how long a window must be that a sensor of that period says enough about, in tenths of a second."""
    return math.ceil((MIN_UPDATES_FLAGGED + _SPARE_UPDATES) * period_s * 10) / 10


def _on_times(plan: SweepPlan, meter: Meter) -> str:
    """Return one sentence on the times that the slowest sensor needs; empty where the plan gives it enough.

    The same counts decide after each run whether its power may be used (rule ``window-too-short``).
    """
    if not meter.rails:
        return ""
    slowest = max(meter.rails, key=lambda rail: rail.update_period_s)
    period_s = max(slowest.update_period_s, meter.sample_period_s)
    outlook = [
        f"{title} of {seconds:g} s will {void if seconds < MIN_UPDATES_VOID * period_s else flagged}"
        for title, seconds, void, flagged in (
            ("runs", plan.duration_s, "have no power figures", "be flagged as too short"),
            ("an idle baseline", plan.idle_s, "give no idle power", "be rather uncertain"),
        )
        if 0 < seconds < MIN_UPDATES_FLAGGED * period_s
    ]
    if not outlook:
        return ""
    return (
        f"{slowest.key} has a new value every {period_s:g} s and {MIN_UPDATES_FLAGGED} of them are wanted: "
        f"{' and '.join(outlook)}; ask for at least {enough_s(period_s):g} s."
    )
