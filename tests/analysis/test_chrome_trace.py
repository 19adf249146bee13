"""The trace of one inference, against what the Trace Event Format asks of each kind of event.

"Trace Event Format" (Duca and Sinclair): complete events need name, cat, ph, ts, dur, pid, tid; counter events name,
ph, ts, pid and a number for each series in args; metadata events the name of what they name, and args.name.
"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from layer_profiles import layer_profile
from powerlab.analysis.chrome_trace import chrome_trace
from powerlab.domain.quantity import Provenance

PHASES = {"X", "C", "M"}


@pytest.fixture
def trace():
    """The trace as a reader gets it."""
    profiles = [layer_profile(), layer_profile(power=None)]
    return json.loads(json.dumps(chrome_trace(profiles), allow_nan=False))


def of(trace, phase: str, pid: int = 1):
    return [event for event in trace["traceEvents"] if event["ph"] == phase and event["pid"] == pid]


def test_it_is_a_json_object_of_known_events(trace):
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    assert {event["ph"] for event in trace["traceEvents"]} == PHASES
    assert all(isinstance(event["pid"], int) and isinstance(event["name"], str) for event in trace["traceEvents"])
    assert all(isinstance(value, str) for value in trace["otherData"].values())


def test_every_layer_is_a_complete_event_with_its_time_in_microseconds(trace):
    events = of(trace, "X")
    assert [event["name"] for event in events] == ["x interleaved", "conv_0", "pool_3", "fc_4"]
    for event in events:
        assert {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"} == set(event)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert event["dur"] > 0
    assert [event["dur"] for event in events] == pytest.approx([200, 2000, 500, 800])


def test_layers_follow_on_each_other(trace):
    events = of(trace, "X")
    for before, after in pairwise(events):
        assert after["ts"] == pytest.approx(before["ts"] + before["dur"])
    assert events[0]["ts"] == 0


def test_a_layer_says_its_kernel_speed_and_joules(trace):
    conv = of(trace, "X")[1]["args"]
    assert conv["kernel"] == "conv_direct_f32_2x6_avx2"
    assert conv["nodes"] == "conv_0 + bn_1 + relu_2"
    assert conv["GFLOP/s"] == pytest.approx(118)
    assert conv["J"] == pytest.approx(0.028)
    assert conv["J low"] < conv["J"] < conv["J high"]
    assert conv["J provenance"] == "simulated"


def test_the_power_is_a_counter_that_steps_with_the_layers(trace):
    counters = of(trace, "C")
    assert [event["ts"] for event in counters] == pytest.approx([0, 200, 2200, 2700, 3500])
    assert [event["args"]["W"] for event in counters] == [9, 14, 10, 11, 11]
    assert all(set(event) == {"name", "ph", "ts", "pid", "args"} for event in counters)
    assert {event["name"] for event in counters} == {"power, W (simulated)"}


def test_without_power_there_are_times_and_no_watts(trace):
    assert of(trace, "C", pid=2) == []
    assert all("J" not in event["args"] for event in of(trace, "X", pid=2))


def test_rows_have_names(trace):
    names = {(event["name"], event["pid"]): event["args"]["name"] for event in of(trace, "M") + of(trace, "M", pid=2)}
    assert set(names) == {("process_name", 1), ("thread_name", 1), ("process_name", 2), ("thread_name", 2)}
    assert names["process_name", 1] == "resnet50, batch 1, 2 threads, mode MAXN (xavier-sim)"
    assert names["thread_name", 1] == "built-in engine, avx2, 2 threads"


def test_an_estimate_is_called_one():
    trace = chrome_trace([layer_profile(power=Provenance.ESTIMATED)])
    assert "power, W (estimated)" in json.dumps(trace)
