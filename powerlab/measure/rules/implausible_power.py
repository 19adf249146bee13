"""``implausible-power``: readings that no load can explain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Part, RailQuantity, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import covers
from powerlab.measure.energy.total import total_energy
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, by_share, inside, unshared_half_width_w

SPIKE_TIMES = 3.0
"""A reading at this multiple of all others but a few is a slip: a burst of the load is seen in more than one."""
FEW_READINGS = 0.001
SPIKE_SHARE = 0.002
"""Of the energy: slips that make up less do no harm."""
MIN_READINGS = 20
IDLE_SHARE = 0.5


def implausible_power(evidence: Evidence) -> Iterator[Judgement]:
    """Readings far above all others are slips of the sensor; so is a board that takes nothing, or less than idle."""
    traces = evidence.total_traces()
    whole = evidence.total is not None and len(traces) == len(evidence.total.rails)
    if not whole or not all(covers(trace, *evidence.window_ns) for trace in traces):
        return
    for trace in traces:
        yield from _spike(trace, evidence.window_ns)
    for trace, window_ns in _idle(evidence):
        for verdict, detail in _spike(trace, window_ns):
            yield verdict, f"while idle power was measured: {detail}"
    yield from _dropouts(evidence)
    yield from _below_idle(evidence)


def _idle(evidence: Evidence) -> Iterator[tuple[Trace, tuple[int, int]]]:
    """Yield the rails of the total in the idle baselines, and when those were."""
    windows = {Part.IDLE_BEFORE: evidence.idle_before_ns, Part.IDLE_AFTER: evidence.idle_after_ns}
    for trace in evidence.idle_traces:
        window_ns = windows.get(trace.part)
        if window_ns is not None and evidence.total is not None and trace.rail.key in evidence.total.rails:
            yield trace, window_ns


def _spike(trace: Trace, window_ns: tuple[int, int]) -> Iterator[Judgement]:
    power_w, lasted_s = _readings(trace, window_ns)
    if power_w.size < MIN_READINGS:
        return
    few = 2 + int(FEW_READINGS * power_w.size)
    highest_w, others_w = float(power_w.max()), float(np.sort(power_w)[-few])
    energy_j = float(np.sum(np.abs(power_w) * lasted_s))
    slips = power_w > SPIKE_TIMES * max(others_w, 0.0)
    share = float(np.sum(((power_w - others_w) * lasted_s)[slips])) / energy_j if energy_j > 0 else 0.0
    if share > SPIKE_SHARE:
        yield (
            Verdict.FLAGGED,
            f"one reading of {trace.rail.key} says {highest_w:.3g} W where all others but a few are below "
            f"{others_w:.3g} W, and makes up {share:.1%} of its energy",
        )


def _dropouts(evidence: Evidence) -> Iterator[Judgement]:
    """A board that works takes no 0 W, nor half of what it takes idle."""
    traces = evidence.total_traces()
    if any(trace.rail.quantity is not RailQuantity.POWER for trace in traces):
        return
    time_ns = traces[0].time_ns[inside(traces[0], evidence.window_ns)]
    if not time_ns.size:
        return
    # On a clock that begins with the window: an uptime of months in ns fits no float64.
    start_ns = evidence.window_ns[0]
    board_w = np.sum([np.interp(time_ns - start_ns, one.time_ns - start_ns, one.value) for one in traces], axis=0)
    idle_w = [idle.power_w for idle in (evidence.idle_before, evidence.idle_after) if idle is not None]
    least_w = IDLE_SHARE * min(idle_w, default=0.0)
    share = float(np.mean(board_w <= least_w))
    if (verdict := by_share(share)) is not Verdict.VALID:
        what = f"half of its idle power or less ({least_w:.3g} W)" if idle_w else "0 W"
        yield verdict, f"the board read {what} in {share:.0%} of the window, under load"


def _readings(trace: Trace, window_ns: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the power of each reading in W and how long it stands, in s; of a counter, from change to change."""
    chosen = inside(trace, window_ns)
    time_s, value = (trace.time_ns[chosen] - window_ns[0]) / 1e9, trace.value[chosen]
    if trace.rail.quantity is RailQuantity.POWER:
        edges_s = np.concatenate((time_s[:1], (time_s[1:] + time_s[:-1]) / 2, time_s[-1:]))
        return value, np.diff(edges_s)
    changed = np.flatnonzero(np.diff(value)) + 1
    lasted_s = np.diff(time_s[changed])
    return np.diff(value[changed]) / lasted_s, lasted_s


def _below_idle(evidence: Evidence) -> Iterator[Judgement]:
    """A load that takes less than none; a board that is still warm may be idle above it once, but not twice.

    The same sensor read both, so that its gain error cancels out of the comparison.
    """
    idles = [idle for idle in (evidence.idle_before, evidence.idle_after) if idle is not None]
    if evidence.total is None or not idles:
        return
    load = total_energy(evidence.total, evidence.traces, evidence.window_ns)
    idle = min(idles, key=lambda one: one.power_w)
    unsure_w = unshared_half_width_w(load) + unshared_half_width_w(idle)
    if load.power_w + unsure_w < idle.power_w:
        yield Verdict.FLAGGED, f"the board took {load.power_w:.3g} W under load, and {idle.power_w:.3g} W idle"
