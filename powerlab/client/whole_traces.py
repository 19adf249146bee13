"""Every sample of a run's traces: the server gives them in windows, of which long ones are drawn together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from powerlab.client.client import Client
from powerlab.domain.power import Part, Rail, Trace
from powerlab.protocol.records import TraceView

_POINTS = 100_000
"""Samples of a trace that may be asked for at a time."""
_SURELY_WHOLE = _POINTS // 2 - 1
"""A trace that was drawn together has more: a sample at least of each of half as many neighbourhoods."""


def whole_traces(client: Client, run_id: str) -> tuple[Trace, ...]:
    """Return all that was recorded with a run, as it was recorded; raises PowerlabError where the server says no."""
    pieces: dict[tuple[Rail, Part], list[TraceView]] = {}
    for view in _views(client, run_id, None, None):
        pieces.setdefault((view.rail, view.part), []).append(view)
    return tuple(_joined(views) for views in pieces.values())


def _views(client: Client, run_id: str, start_ns: int | None, end_ns: int | None) -> Iterator[TraceView]:
    """Yield what lies in a window, both ends included, in order; a window with too much is halved."""
    views = client.traces(run_id, from_ns=start_ns, to_ns=end_ns, points=_POINTS)
    if all(len(view.time_ns) < _SURELY_WHOLE for view in views):
        yield from views
        return
    first = min(view.time_ns[0] for view in views if view.time_ns)
    last = max(view.time_ns[-1] for view in views if view.time_ns)
    middle = (first + last) // 2
    yield from _views(client, run_id, first, middle)
    yield from _views(client, run_id, middle + 1, last)


def _joined(views: Sequence[TraceView]) -> Trace:
    return Trace(
        rail=views[0].rail,
        time_ns=np.array([time for view in views for time in view.time_ns], np.int64),
        value=np.array([value for view in views for value in view.value], np.float64),
        read_cost_ns=views[0].read_cost_ns,
        part=views[0].part,
    )
