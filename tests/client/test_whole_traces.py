"""Every sample of a run comes back from a server, however long its traces are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.client import whole_traces as module
from powerlab.client.whole_traces import whole_traces
from powerlab.domain.power import Part, Trace
from powerlab.protocol.records import TraceView
from powerlab.store.reads.decimate import decimate
from powerlab.store.traces.base import cut
from recorded_run import rail, trace_of


class Server:
    """Answers as the API does, from traces in memory."""

    def __init__(self, traces: tuple[Trace, ...]) -> None:
        self._traces = traces

    def traces(
        self, run_id: str, *, from_ns: int | None = None, to_ns: int | None = None, points: int
    ) -> tuple[TraceView, ...]:
        assert run_id == "run"
        return tuple(self._views(from_ns or 0, 2**63 - 1 if to_ns is None else to_ns, points))

    def _views(self, start_ns: int, end_ns: int, points: int) -> Iterator[TraceView]:
        for trace in (decimate(one, points) for one in cut(self._traces, start_ns, end_ns)):
            yield TraceView(
                rail=trace.rail,
                time_ns=tuple(trace.time_ns.tolist()),
                value=tuple(trace.value.tolist()),
                read_cost_ns=trace.read_cost_ns,
                part=trace.part,
            )


@pytest.fixture(scope="module", autouse=True)
def _small_answers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_POINTS", 100)
        patch.setattr(module, "_SURELY_WHOLE", 49)
        yield


@given(st.floats(0.05, 9), st.floats(0.05, 9), st.booleans())
def test_every_sample_comes_back(running_s, idle_s, constant):
    traces = (
        trace_of(rail("VDD_IN"), (10.0, 10.0 + running_s), 12.0),
        trace_of(rail("VDD_IN"), (2.0, 2.0 + idle_s), 4.0, Part.IDLE_BEFORE),
        trace_of(rail("VDD_CPU"), (10.0, 10.0 + running_s), 6.0),
    )
    if constant:  # of equal values fewer stand for a neighbourhood
        traces = tuple(replace(one, value=np.full_like(one.value, 5.0)) for one in traces)
    found = {(one.rail, one.part): one for one in whole_traces(Server(traces), "run")}
    assert len(found) == len(traces)
    for trace in traces:
        same = found[trace.rail, trace.part]
        assert np.array_equal(same.time_ns, trace.time_ns)
        assert np.array_equal(same.value, trace.value)
        assert same.read_cost_ns == trace.read_cost_ns
