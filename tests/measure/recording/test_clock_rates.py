"""What is shown beside a run: its clocks, and the power of its warm-up."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import simulated_board
from powerlab.domain.power import POWER_QUANTITIES, Part, Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.recording.clock_rates import ClockRates
from powerlab.measure.recording.parts import cut, joined, span_of
from powerlab.sweep.events import RunFinished
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

RAIL = Rail(
    source="x", name="y", quantity=RailQuantity.POWER, resolution=0.0, relative_error=0.0, update_period_s=0.0,
    provenance=Provenance.MEASURED,
)  # fmt: skip
COUNTER = replace(RAIL, quantity=RailQuantity.ENERGY)


def trace_of(rail: Rail, time_s: list[float], value: list[float]) -> Trace:
    return Trace(rail=rail, time_ns=np.round(np.array(time_s) * 1e9).astype(np.int64), value=np.array(value, float))


def test_a_board_shows_its_clocks_while_they_change():
    with simulated_board("jetson-agx-xavier") as sysroot, ClockRates(sysroot, period_s=0.01) as clock_rates:
        deadline = time.monotonic() + 20
        while min(len(trace.value) for trace in clock_rates.traces()) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        traces = {trace.rail.name: trace for trace in clock_rates.finish()}
    assert {"CPU 0-1", "GPU", "memory"} <= set(traces)
    for trace in traces.values():
        assert (trace.rail.quantity, trace.rail.provenance) == (RailQuantity.CLOCK, Provenance.SIMULATED)
        assert len(trace.value) >= 4
        assert np.all(np.diff(trace.time_ns) > 0)
        assert np.all((trace.value > 10) & (trace.value < 10_000))


def test_a_machine_that_shows_no_clock_has_no_trace(tmp_path):
    with ClockRates(Sysroot(tmp_path)) as clock_rates:
        assert clock_rates.finish() == ()
    assert clock_rates.core_share == 0


def test_clocks_that_take_long_to_read_are_read_less_often(monkeypatch):
    spent_s = iter(range(1, 100))
    with simulated_board("jetson-agx-xavier") as sysroot:
        monkeypatch.setattr(time, "thread_time", lambda: next(spent_s) * 0.001)
        with ClockRates(sysroot) as clock_rates:
            assert clock_rates.period_s == pytest.approx(0.5)


def test_a_run_keeps_clocks_in_every_part_and_the_power_of_its_warm_up(tmp_path):
    plan = SweepPlan(
        models=("squeezenet",), threads=(1,), repeats=3, duration_s=0.3, min_inferences=1, idle_s=0.8, warm_up_s=0.8,
        longest_warm_up_s=0.8, cool_down_s=1.2, sample_period_s=0.02,
    )  # fmt: skip
    with simulated_board("jetson-agx-xavier") as sysroot:
        finished = [
            event
            for event in run_sweep(plan, "sweep", Host(sysroot=sysroot, state_dir=tmp_path))
            if isinstance(event, RunFinished)
        ]
    parts = {part: [trace for trace in finished[0].traces if trace.part is part] for part in Part}
    for part, traces in parts.items():
        quantities = {trace.rail.quantity for trace in traces}
        assert {RailQuantity.CLOCK, RailQuantity.TEMPERATURE} <= quantities, part
        assert quantities & set(POWER_QUANTITIES), part
    in_order = (Part.COOL_DOWN, Part.IDLE_BEFORE, Part.WARM_UP, Part.RUN, Part.IDLE_AFTER)
    spans = [span_of(parts[part]) for part in in_order]
    assert spans == sorted(spans, key=lambda span: span or (0, 0))
    shared = [trace for trace in finished[1].traces if trace.part is Part.IDLE_BEFORE]
    assert RailQuantity.CLOCK in {trace.rail.quantity for trace in shared}


@given(st.lists(st.tuples(st.floats(0.001, 0.5), st.floats(0, 100)), min_size=1, max_size=60), st.integers(1, 5))
def test_recordings_become_one_trace_of_samples_as_they_were_read(samples, pieces):
    time_s, value = np.cumsum([gap for gap, _ in samples]), [watts for _, watts in samples]
    whole = trace_of(RAIL, list(time_s), value)
    bounds = np.linspace(0, len(value), pieces + 1).astype(int)
    recordings = [
        [replace(whole, time_ns=whole.time_ns[start:end], value=whole.value[start:end])]
        for start, end in pairwise(bounds)
    ]
    (found,) = joined(recordings)
    assert set(zip(found.time_ns, found.value, strict=True)) <= set(zip(whole.time_ns, whole.value, strict=True))
    assert found.time_ns[0] == whole.time_ns[0]
    assert np.all(np.diff(found.time_ns // 100_000_000) > 0)


def test_of_a_counter_that_was_set_back_only_what_came_after_is_kept():
    recordings = [[trace_of(COUNTER, [0, 1], [5, 6])], [trace_of(COUNTER, [2, 3], [0.1, 1])]]
    (found,) = joined(recordings)
    assert found.value.tolist() == [0.1, 1]


def test_a_cut_holds_both_ends_and_nothing_where_nothing_was():
    trace = trace_of(RAIL, [1, 2, 3, 4], [1, 2, 3, 4])
    (found,) = cut([trace], (2_000_000_000, 3_000_000_000))
    assert found.value.tolist() == [2, 3]
    assert list(cut([trace], (5_000_000_000, 6_000_000_000))) == list(cut([trace], None)) == []
