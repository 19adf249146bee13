"""``unsteady-temperature``: the device's temperature changed during the window."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, inside

MAX_DRIFT_K = 5.0
"""Leakage grows by one to two per cent a kelvin: five kelvins are up to a tenth of the leakage."""
END_SHARE = 0.1
"""The start and the end are means over this share of the readings: zones read in steps of up to a kelvin."""


def unsteady_temperature(evidence: Evidence) -> Iterator[Judgement]:
    """Warm silicon leaks more, so a window with a rising temperature belongs to no steady state."""
    for trace in evidence.traces:
        if trace.rail.quantity is not RailQuantity.TEMPERATURE:
            continue
        ends = _ends_c(trace, evidence.window_ns)
        if ends is not None and abs(ends[1] - ends[0]) > MAX_DRIFT_K:
            yield (
                Verdict.FLAGGED,
                f"{trace.rail.name} went from {ends[0]:.1f} °C to {ends[1]:.1f} °C within the window "
                f"(limit {MAX_DRIFT_K:g} K)",
            )


def _ends_c(trace: Trace, window_ns: tuple[int, int]) -> tuple[float, float] | None:
    seen_c = trace.value[inside(trace, window_ns)]
    if seen_c.size < 2:
        return None
    count = max(1, round(END_SHARE * seen_c.size))
    return float(np.mean(seen_c[:count])), float(np.mean(seen_c[-count:]))
