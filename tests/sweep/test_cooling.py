"""Waiting before a run until the device is cool enough: told, bounded, and ended by whoever stops the sweep."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.measure.heat.judge import BLIND_S
from powerlab.sweep import cooling as module
from powerlab.sweep.cooling import LOOK_PERIOD_S, TELL_PERIOD_S, Cooled, wait_until_cool
from powerlab.sweep.events import CoolingDown
from powerlab.sysroot import Sysroot

Course = Callable[[float], Mapping[str, float]]
ROOT = Sysroot()


@pytest.fixture
def waited(monkeypatch, make_plan):
    """Let a device whose temperatures follow a course cool down, on a clock that only waiting moves."""

    def run(course: Course, stop_at_s: float | None = None, **plan: object) -> tuple[list[CoolingDown], Cooled, float]:
        now, stop = SimpleNamespace(s=0.0), threading.Event()

        def pause(_: threading.Event | None) -> None:
            now.s += LOOK_PERIOD_S
            if stop_at_s is not None and now.s >= stop_at_s:
                stop.set()

        reading = SimpleNamespace(read=lambda: course(now.s))
        monkeypatch.setattr(module, "Temperatures", lambda _: nullcontext(reading))
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now.s))
        monkeypatch.setattr(module, "_pause", pause)
        told: list[CoolingDown] = []
        steps = wait_until_cool(ROOT, make_plan(**plan), stop)
        while True:
            try:
                told.append(next(steps))
            except StopIteration as ended:
                return told, ended.value, now.s

    return run


def falling(start_c: float, per_s: float) -> Course:
    return lambda second: {"GPU-therm": 40.0, "CPU-therm": start_c - per_s * second}


def test_without_limits_nothing_is_read(waited):
    def unread(_: float) -> Mapping[str, float]:
        pytest.fail("nobody asked for that")

    assert waited(unread) == ([], Cooled(), 0.0)


def test_a_cool_device_does_not_wait_and_nothing_is_told(waited):
    assert waited(falling(69.9, 0.0), max_temperature_c=80.0) == ([], Cooled(), 0.0)


def test_a_hot_device_is_waited_for_and_that_is_told_at_once_and_every_ten_seconds(waited):
    told, cooled, after_s = waited(falling(95.0, 1.0), max_temperature_c=80.0, longest_cooling_s=60.0)
    assert cooled == Cooled(waited=True)
    assert after_s == 25.5, "the first look below 70 °C"
    assert [event.waited_s for event in told] == [0.0, 10.0, 20.0]
    assert told[1].detail == (
        "waits for the device to cool down: CPU-therm 85.0 °C, and a run begins below 70 °C (10 of at most 60 s)"
    )


def test_one_that_stays_hot_is_waited_for_only_so_long(waited):
    told, cooled, after_s = waited(falling(95.0, 0.0), start_below_temperature_c=60.0, longest_cooling_s=31.0)
    assert (after_s, len(told)) == (31.0, 4)
    assert cooled.refusal.rule == "too-hot"
    assert cooled.refusal.sentence == (
        "the device did not cool down: after 31 s CPU-therm is at 95.0 °C, and a run begins below 60 °C; no further "
        "run of this stay in its power mode begins."
    )


def test_a_device_that_gives_no_temperature_is_not_taken_for_a_cool_one(waited):
    told, cooled, after_s = waited(lambda _: {}, max_temperature_c=80.0)
    assert (told, after_s) == ([], BLIND_S)
    assert cooled.refusal.rule == "no-temperature"
    assert "no temperature could be read for 5 s" in cooled.refusal.sentence


def test_sensors_that_are_silent_for_a_moment_are_waited_for(waited):
    def course(second: float) -> Mapping[str, float]:
        return {} if second % BLIND_S else {"CPU-therm": 90.0 - second}

    _, cooled, after_s = waited(course, max_temperature_c=80.0)
    assert cooled == Cooled(waited=True)
    assert after_s == 25.0


def test_whoever_stops_the_sweep_ends_the_wait(waited):
    told, cooled, after_s = waited(falling(95.0, 0.0), stop_at_s=3.0, max_temperature_c=80.0)
    assert (cooled, after_s, len(told)) == (Cooled(waited=True), 3.0, 1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(st.none() | st.floats(20.0, 120.0), min_size=1, max_size=60),
    st.floats(30.0, 100.0),
    st.floats(0.0, 40.0),
)
def test_a_run_begins_below_its_limit_or_not_at_all(waited, looks, below_c, longest_s):
    """Whatever the temperatures do, with looks at which there is none."""

    def course(second: float) -> Mapping[str, float]:
        celsius = looks[min(int(second / LOOK_PERIOD_S), len(looks) - 1)]
        return {} if celsius is None else {"CPU-therm": celsius}

    told, cooled, after_s = waited(course, start_below_temperature_c=below_c, longest_cooling_s=longest_s)
    last = course(after_s)
    if cooled.refusal is None:
        assert last["CPU-therm"] < below_c
    elif cooled.refusal.rule == "too-hot":
        assert after_s >= longest_s
    else:
        assert not last
        assert after_s >= BLIND_S
    assert after_s <= longest_s + BLIND_S + LOOK_PERIOD_S
    assert cooled.waited == (bool(told) or cooled.refusal is not None)
    assert all(later.waited_s - sooner.waited_s >= TELL_PERIOD_S for sooner, later in itertools.pairwise(told))
