"""Sweeps on simulated boards that are too hot or draw too much: every run says so; on an untroubled board none does."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from powerlab.boards.simulator import layout, simulated_board
from powerlab.domain.run import Run, Verdict
from powerlab.sweep.events import RunFinished
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign(minutes=1)

TIMEOUT_S = 60.0
ZONE = "/sys/class/thermal/thermal_zone0"
COOLING = "/sys/class/thermal/cooling_device0"


@pytest.fixture
def runs_on(make_plan, numpy_engine, tmp_path):
    """Return a function that makes a short sweep of one point on a board."""

    def sweep(sysroot: Sysroot) -> list[Run]:
        host = Host(sysroot=sysroot, state_dir=tmp_path / "state", name="bench")
        plan = make_plan(
            models=("good",),
            threads=(1,),
            repeats=3,
            duration_s=0.5,
            warm_up_s=0.0,
            idle_s=0.3,
            engines=(numpy_engine,),
        )
        return [event.run for event in run_sweep(plan, "s", host) if isinstance(event, RunFinished)]

    return sweep


@pytest.fixture(params=["jetson-agx-xavier", "jetson-agx-orin"])
def board(request) -> Iterator[Sysroot]:
    with simulated_board(request.param) as sysroot:
        yield sysroot


def said(run: Run) -> list[str]:
    return [finding.detail for finding in run.findings if finding.rule == "throttled"]


def zone_c(sysroot: Sysroot) -> float:
    return int(layout.first_line(sysroot.path(f"{ZONE}/temp"))) / 1000


def set_room(sysroot: Sysroot, celsius: float) -> None:
    layout.rewrite(sysroot.path(layout.ROOM_FILE), str(round(celsius * 1000)))


def heat_up(sysroot: Sysroot) -> float:
    """Put the board into an oven until it is past its trip and clocks fall, then into one that keeps it there."""
    trip_c = int(layout.first_line(sysroot.path(f"{ZONE}/trip_point_0_temp"))) / 1000
    deadline_s = time.monotonic() + TIMEOUT_S
    set_room(sysroot, 1500.0)
    while zone_c(sysroot) < trip_c + 4:
        assert time.monotonic() < deadline_s, "the board did not get hot"
        time.sleep(0.01)
    set_room(sysroot, trip_c + 10)
    while layout.first_line(sysroot.path(f"{COOLING}/cur_state")) == "0":
        assert time.monotonic() < deadline_s, "the clocks did not fall"
        time.sleep(0.01)
    return trip_c


def test_an_untroubled_board_says_nothing(board, runs_on):
    runs = runs_on(board)
    assert len(runs) == 3
    assert [said(run) for run in runs] == [[], [], []]


def test_a_board_past_its_trip_flags_every_run_and_its_baseline(board, runs_on):
    trip_c = heat_up(board)
    name = layout.first_line(board.path(f"{ZONE}/type"))
    for run in runs_on(board):
        assert run.verdict is not Verdict.VALID
        sentences = said(run)
        (hot,) = (text for text in sentences if text.startswith(f"the thermal zone {name} reached "))
        assert f"from {trip_c:.1f} °C on the kernel begins to slow the device down" in hot
        assert any("slow the device down through cpufreq-cpu0" in text for text in sentences)
        assert any(text.startswith("while idle power was measured: the thermal zone") for text in sentences)
        void = run.verdict is Verdict.VOID  # a busy machine may leave holes in the samples
        assert (run.metric("power_w") is None) == void, "a flag takes no figure away"


def test_an_over_current_event_flags_every_run(runs_on):
    with simulated_board("jetson-agx-orin") as sysroot:
        layout.rewrite(sysroot.path(layout.FAULTS_FILE), "over-current")
        for run in runs_on(sysroot):
            assert run.verdict is not Verdict.VALID
            (sentence,) = (
                text for text in said(run) if text.startswith("the over-current protection slowed the module")
            )
            assert sentence.endswith("the current was too high (oc3)")
