"""``negative-power``: negative power readings, or an energy counter that ran backwards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import covers
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, by_share, inside

NOISE_SHARE = 0.01
"""A rail near 0 W may read below it by its stated error, or by this share of the board's power."""


def negative_power(evidence: Evidence) -> Iterator[Judgement]:
    """What a load takes is never below 0 W; a sensor connected the wrong way round says so."""
    traces = [trace for trace in evidence.total_traces() if covers(trace, *evidence.window_ns)]
    board_w = sum(float(np.mean(np.abs(trace.value))) for trace in traces if trace.rail.quantity is RailQuantity.POWER)
    for trace in traces:
        if trace.rail.quantity is RailQuantity.ENERGY:
            yield from _counter_backwards(trace)
            continue
        seen_w = trace.value[inside(trace, evidence.window_ns)]
        below_w = max(trace.rail.offset + trace.rail.resolution, NOISE_SHARE * board_w)
        share = float(np.mean(seen_w < -below_w)) if seen_w.size else 0.0
        if (verdict := by_share(share)) is not Verdict.VALID:
            yield verdict, f"{trace.rail.key} read below 0 W in {share:.0%} of the window, down to {seen_w.min():.3g} W"


def _counter_backwards(trace: Trace) -> Iterator[Judgement]:
    """An unwrapped counter only rises: the recording sees to that, so that a falling one was changed afterwards."""
    back_j = -float(np.diff(trace.value).min())
    if back_j > trace.rail.resolution:
        yield Verdict.VOID, f"the energy counter {trace.rail.key} went back by {back_j:.3g} J"
