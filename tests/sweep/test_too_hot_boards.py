"""Sweeps on simulated boards that are put into an oven: what the guard does, and that the board is as it was before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from powerlab.boards.simulator import layout, simulated_board
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.domain.temperature import TemperatureLimits
from powerlab.sweep.events import CoolingDown, RunFinished, RunStarted, SweepEvent, SweepFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree

pytestmark = pytest.mark.campaign(minutes=1)

TIMEOUT_S = 60.0
ZONE = "/sys/class/thermal/thermal_zone0/temp"
OVEN_C, FREEZER_C = 1500.0, -1500.0
"""Rooms in which a board gets hot, or cool again, by some 75 °C a second."""


@pytest.fixture
def board() -> Iterator[Sysroot]:
    with simulated_board("jetson-agx-xavier") as sysroot:
        yield sysroot


@pytest.fixture
def quick_plan(make_plan, numpy_engine):
    def make(**changes):
        quick = {"models": ("good",), "threads": (1,), "engines": (numpy_engine,), "warm_up_s": 0.0, "idle_s": 0.0}
        return make_plan(**{**quick, "duration_s": 0.2, **changes})

    return make


@pytest.fixture
def host(board, tmp_path) -> Host:
    return Host(sysroot=board, state_dir=tmp_path / "state", name="bench")


class Oven:
    """The room around a board."""

    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot = sysroot

    def set(self, celsius: float) -> None:
        layout.rewrite(self._sysroot.path(layout.ROOM_FILE), str(round(celsius * 1000)))

    def board_c(self) -> float:
        return int(layout.first_line(self._sysroot.path(ZONE))) / 1000

    def bring_to(self, low_c: float, high_c: float) -> None:
        """Let the board have a temperature, and keep about that."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not low_c < self.board_c() < high_c:
            assert time.monotonic() < deadline_s, f"the board is at {self.board_c()} °C"
            self.set(OVEN_C if self.board_c() < low_c else FREEZER_C)
            time.sleep(0.005)
        self.set((low_c + high_c) / 2 - 8.0)  # it draws some watts, and 1.1 °C more a watt


@pytest.fixture
def oven(board) -> Oven:
    return Oven(board)


def mode_of(sysroot: Sysroot) -> tuple[str, ...]:
    names = ("scaling_max_freq", "scaling_min_freq", "scaling_governor")
    return tuple(sysroot.read(f"/sys/devices/system/cpu/cpu0/cpufreq/{name}").strip() for name in names)


def runs_in(events: list[SweepEvent]) -> list[Run]:
    return [event.run for event in events if isinstance(event, RunFinished)]


def words_of(run: Run) -> list[tuple[str, str]]:
    return [(finding.rule, finding.detail) for finding in run.findings if finding.verdict is Verdict.FAILED]


def test_a_board_that_gets_too_hot_loses_that_run_cools_down_and_goes_on(host, oven, quick_plan):
    """The golden behaviour: hot in the second run; the third waits, and is measured as the first was."""
    before = mode_of(host.sysroot)
    plan = quick_plan(modes=("MODE_15W",), max_temperature_c=75.0, start_below_temperature_c=60.0, duration_s=1.5)
    seen: list[Any] = []
    oven.bring_to(35, 50)
    for event in run_sweep(plan, "s", host):
        seen.append(event)
        if isinstance(event, RunStarted) and event.index == 2:
            oven.set(OVEN_C)
        if isinstance(event, RunFinished) and event.index == 2:
            oven.set(50.0)  # the board is past 75 °C and takes a while
        if isinstance(event, CoolingDown):
            oven.bring_to(35, 50)
    kinds = [type(event) for event in seen]
    assert kinds == [
        *(SweepStarted, RunStarted, RunFinished, RunStarted, RunFinished),
        *(CoolingDown, RunStarted, RunFinished, SweepFinished),
    ]
    first, hot, last = runs_in(seen)
    ((rule, sentence),) = words_of(hot)
    assert rule == "too-hot"
    zone, peak = sentence.split(" reached ")[0], float(sentence.split(" reached ")[1].split(" °C")[0])
    assert zone in {"CPU-therm", "GPU-therm"}
    assert peak > 75.0
    assert sentence.endswith("and 75 °C is the most it may have; the run was ended.")
    assert (hot.metrics, hot.conditions) == ((), None), "no figure of an overheated board"
    for run in (first, last):
        assert words_of(run) == []
        assert run.metric("throughput_img_per_s") is not None
        assert run.conditions.temperature_guard.startswith("watched CPU-therm, GPU-therm: ")
        assert run.conditions.temperature_guard.endswith("a run begins below 60 °C and is ended above 75 °C")
    (waiting,) = (event for event in seen if isinstance(event, CoolingDown))
    assert waiting.below_c == 60.0
    assert waiting.hottest.celsius > 60.0
    assert seen[-1].failed_count == 1
    assert mode_of(host.sysroot) == before


def test_a_board_that_stays_hot_fails_its_runs_without_having_its_mode_set(host, oven, quick_plan, monkeypatch):
    oven.bring_to(40, 50)
    applied = []
    real = host.controller.applied
    monkeypatch.setattr(host.controller, "applied", lambda mode: applied.append(mode) or real(mode))
    plan = quick_plan(modes=("MODE_15W",), start_below_temperature_c=20.0, longest_cooling_s=0.5)
    events = list(run_sweep(plan, "s", host))
    assert {type(event) for event in events} == {SweepStarted, CoolingDown, RunStarted, RunFinished, SweepFinished}
    assert len(runs_in(events)) == plan.repeats
    for run in runs_in(events):
        ((rule, sentence),) = words_of(run)
        assert rule == "too-hot"
        assert sentence.startswith("the device did not cool down: after ")
        assert "and a run begins below 20 °C" in sentence
    assert applied == []


def test_the_owners_limit_holds_where_the_plan_has_none_and_where_it_is_looser(host, oven, quick_plan):
    oven.bring_to(40, 50)
    host.temperature_limits = TemperatureLimits(max_c=55.0, start_below_c=54.0)
    for loose in ({}, {"max_temperature_c": 120.0, "start_below_temperature_c": 110.0}):
        oven.bring_to(40, 50)
        events = run_sweep(quick_plan(duration_s=1.5, **loose), "s", host)
        for event in events:
            if isinstance(event, RunStarted):
                oven.set(OVEN_C)
            if isinstance(event, RunFinished):
                ((rule, sentence),) = words_of(event.run)
                assert (rule, "and 55 °C is the most it may have" in sentence) == ("too-hot", True)
                events.close()
        assert "55" in str(host.capabilities().temperature_limits)


def test_a_board_without_a_sensor_is_refused_in_a_sentence_before_anything_is_touched(quick_plan, tmp_path):
    fixed = ZoneTree(tmp_path, ("PMIC-Die", "100000"))
    host = Host(sysroot=fixed.sysroot, state_dir=tmp_path / "state", name="bench")
    plan = quick_plan(max_temperature_c=85.0)
    with pytest.raises(PowerlabError, match="bench has no temperature sensor that can be read, so nobody can watch"):
        next(run_sweep(plan, "s", host))
    host.temperature_limits = TemperatureLimits(start_below_c=60.0)
    with pytest.raises(PowerlabError, match="watch that a run begins below 60 °C"):
        next(run_sweep(replace(plan, max_temperature_c=None), "s", host))


def test_sensors_that_fail_while_it_waits_fail_the_runs(host, oven, quick_plan, monkeypatch):
    oven.bring_to(40, 50)
    plan = quick_plan(start_below_temperature_c=20.0, longest_cooling_s=600.0)
    events = []
    for event in run_sweep(plan, "s", host):
        events.append(event)
        if isinstance(event, CoolingDown):
            monkeypatch.setattr("powerlab.throttling.zones.Zones.read", lambda _: {})
    assert {words_of(run)[0][0] for run in runs_in(events)} == {"no-temperature"}
