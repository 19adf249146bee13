"""``power-gap``: gaps in the samples of a power rail."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.power import RailQuantity
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import covers
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, by_share

GAP_PERIODS = 5.0


def power_gap(evidence: Evidence) -> Iterator[Judgement]:
    """A hole in the samples is time whose power nobody saw; an energy counter goes on counting through it.

    All holes count together: twenty small ones hide as much as a large one. What is usual is seen in the samples, too,
    because a sensor that is slow to read has few samples and no holes (:mod:`window_too_short` counts them).
    """
    for trace in evidence.total_traces():
        if trace.rail.quantity is RailQuantity.ENERGY or not covers(trace, *evidence.window_ns):
            continue
        seen_s = float(np.median(np.diff(trace.time_ns))) / 1e9
        usual_s = max(evidence.sample_period_s, trace.rail.update_period_s, seen_s)
        apart_s = np.diff(np.clip(trace.time_ns, *evidence.window_ns)) / 1e9
        gap_s = float(np.sum(apart_s, where=apart_s > np.float64(GAP_PERIODS * usual_s)))
        share = gap_s / evidence.window_s
        if (verdict := by_share(share)) is not Verdict.VALID:
            yield verdict, f"{trace.rail.key} was not sampled for {gap_s:.2f} s, {share:.0%} of the window"
