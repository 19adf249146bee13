"""``implausible-power``: readings that no load explains."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.energy import covers
from powerlab.measure.evidence import Evidence
from powerlab.measure.power import total_energy
from powerlab.measure.rules.base import SHARE_FLAGGED, Judgement, inside, unshared_half_width_w

SPIKE_TIMES = 3.0
"""One reading at this multiple of the median is looked at; it is judged by its share of the energy."""
MIN_READINGS = 20


def implausible_power(evidence: Evidence) -> Iterator[Judgement]:
    """One reading that makes up much of the energy is a slip of the sensor; so is a load that takes less than none."""
    traces = evidence.total_traces()
    whole = evidence.total is not None and len(traces) == len(evidence.total.rails)
    if not whole or not all(covers(trace, *evidence.window_ns) for trace in traces):
        return
    for trace in traces:
        yield from _spike(trace, evidence.window_ns)
    yield from _below_idle(evidence)


def _spike(trace: Trace, window_ns: tuple[int, int]) -> Iterator[Judgement]:
    power_w, lasted_s = _readings(trace, window_ns)
    if power_w.size < MIN_READINGS:
        return
    usual_w = float(np.median(power_w))
    highest = int(np.argmax((power_w - usual_w) * lasted_s))
    energy_j = float(np.sum(np.abs(power_w) * lasted_s))
    share = float((power_w[highest] - usual_w) * lasted_s[highest]) / energy_j if energy_j > 0 else 0.0
    if share > SHARE_FLAGGED and power_w[highest] > SPIKE_TIMES * usual_w:
        yield (
            Verdict.FLAGGED,
            f"one reading of {trace.rail.key} says {power_w[highest]:.3g} W beside a median of {usual_w:.3g} W, and "
            f"makes up {share:.0%} of its energy",
        )


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
    """The same sensor read both, so that its gain error cancels out of the comparison."""
    if evidence.total is None:
        return
    load = total_energy(evidence.total, evidence.traces, evidence.window_ns)
    for idle, when in ((evidence.idle_before, "before"), (evidence.idle_after, "after")):
        if idle is None:
            continue
        unsure_w = unshared_half_width_w(load) + unshared_half_width_w(idle)
        if load.power_w + unsure_w < idle.power_w:
            yield (
                Verdict.FLAGGED,
                f"the board took {load.power_w:.3g} W under load and {idle.power_w:.3g} W idle {when} it",
            )
