"""Temperature metrics of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.quantity import Metric


def temperature_metrics(traces: Sequence[Trace], window_ns: tuple[int, int]) -> tuple[Metric, ...]:
    """Return the hottest zone's temperature at both ends of the window; nothing without zones.

    Between two readings it is interpolated. How far a zone may be off nobody states, so there is no interval.
    """
    zones = [trace for trace in traces if trace.rail.quantity is RailQuantity.TEMPERATURE and trace.value.size]
    return tuple(
        Metric(
            name=name,
            value=max(float(np.interp(0.0, trace.time_ns - time_ns, trace.value)) for trace in zones),
            provenance=zones[0].rail.provenance,
        )
        for name, time_ns in zip(("start_temperature_c", "end_temperature_c"), window_ns, strict=True)
        if zones
    )
