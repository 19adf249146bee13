"""What is recorded around a run's timed part, for its chart alone: cut by time, joined and thinned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from powerlab.domain.power import RailQuantity, Trace

SHOWN_PERIOD_S = 0.1
"""No figure is made of a warm-up or a cool-down: ten samples a second show them, in a tenth of the room."""


def span_of(traces: Iterable[Trace]) -> tuple[int, int] | None:
    """Return the first and last time of any sample in ns; None where there is none."""
    times_ns = [trace.time_ns for trace in traces if len(trace.time_ns)]
    return (min(int(one[0]) for one in times_ns), max(int(one[-1]) for one in times_ns)) if times_ns else None


def cut(traces: Iterable[Trace], span_ns: tuple[int, int] | None) -> Iterator[Trace]:
    """Yield what lies within a span of CLOCK_MONOTONIC, both ends included; a trace with nothing there is left out."""
    if span_ns is None:
        return
    for trace in traces:
        inside = (trace.time_ns >= span_ns[0]) & (trace.time_ns <= span_ns[1])
        if inside.any():
            yield replace(trace, time_ns=trace.time_ns[inside], value=trace.value[inside])


def joined(recordings: Iterable[Sequence[Trace]]) -> tuple[Trace, ...]:
    """Return recordings of the same rails, made one after the other, as one trace a rail, thinned.

    Of a counter that was set back between two recordings, only what came after is kept.
    """
    by_rail: dict[str, list[Trace]] = {}
    for trace in (trace for recording in recordings for trace in recording if len(trace.time_ns)):
        before = by_rail.setdefault(trace.rail.key, [])
        if before and trace.rail.quantity is RailQuantity.ENERGY and trace.value[0] < before[-1].value[-1]:
            before.clear()
        before.append(trace)
    return tuple(_thinned(traces) for traces in by_rail.values())


def _thinned(traces: Sequence[Trace]) -> Trace:
    """Return the first sample of every tenth of a second: samples as they were read, and no means of them."""
    time_ns = np.concatenate([trace.time_ns for trace in traces])
    value = np.concatenate([trace.value for trace in traces])
    kept = np.unique(time_ns // round(SHOWN_PERIOD_S * 1e9), return_index=True)[1]
    return replace(traces[-1], time_ns=time_ns[kept], value=value[kept])
