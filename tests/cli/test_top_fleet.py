"""``powerlab top --from URL``: the devices of a server, one of them, and what the keys do."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console, RenderableType

from powerlab.cli.commands.top.fleet.feed import Seen
from powerlab.cli.commands.top.fleet.lines import Order, lines
from powerlab.cli.commands.top.fleet.screen import FleetView, fleet_screen
from powerlab.cli.commands.top.terminal import keys
from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.protocol.fleet import Activity, FleetMember, FleetRecord, LastReading, RunningSweep
from powerlab.protocol.readings import (
    ClockNow,
    LiveRecord,
    PhaseRecord,
    RailPower,
    ReadingRecord,
    Snapshot,
    TemperatureNow,
    TotalPower,
)
from powerlab.protocol.records import SweepRecord, SweepState
from tests.dashboards import plausible

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
PLAN = plausible.plan(models=("mobilenetv2",))
SNAPSHOT = Snapshot(
    mode="MODE_15W",
    total=TotalPower(power_w=12.5, provenance=Provenance.SIMULATED, scope="the module"),
    rails=(
        RailPower(rail="ina3221:VDD", power_w=12.5, provenance=Provenance.SIMULATED),
        RailPower(rail="rapl:package-0", provenance=Provenance.MEASURED, problem="denied: use sudo"),
    ),
    clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.0, limit_mhz=2266.0),),
    temperatures=(TemperatureNow(name="CPU-therm", celsius=51.5, limit_c=86.0),),
    load=(0.25, 1.0),
)


def member(name: str, activity: Activity = Activity.IDLE, running: RunningSweep | None = None, throttled: int = 0):
    return FleetMember(
        id=f"id-{name}",
        device=plausible.xavier(name).device,
        seen_at=NOW - timedelta(hours=2 if activity is Activity.OFFLINE else 0),
        activity=activity,
        running=running,
        failed_runs=0,
        failed_sweeps=0,
        throttled_runs=throttled,
    )


def last(age_s: float, power_w: float | None, provenance: Provenance | None) -> LastReading:
    return LastReading(
        at=NOW - timedelta(seconds=age_s),
        fresh=True,
        power_w=power_w,
        provenance=provenance,
        hottest_c=51.5,
        clock_mhz=1190.0,
        mode="MODE_15W",
        history=(),
    )


RUNNING = RunningSweep(
    record=SweepRecord(
        id="70b78d1a-0000",
        device_id="id-busy-1",
        device_name="busy-1",
        simulated=True,
        plan=PLAN,
        state=SweepState.RUNNING,
        detail="",
        created_at=NOW,
        finished_at=None,
        planned_run_count=36,
        stored_run_count=21,
    ),
    left_s=900.0,
    silent=False,
    phase=PhaseRecord(
        sweep_id="70b78d1a-0000",
        phase=RunPhase.TIMED,
        since=NOW,
        ends_at=NOW + timedelta(seconds=14),
        point=PLAN.points()[0],
        run_index=22,
        run_count=36,
    ),
)
FLEET = FleetRecord(
    now=NOW,
    devices=(
        member("bare-1"),
        member("busy-1", Activity.BUSY, RUNNING),
        member("done-1"),
        member("silent-1", Activity.OFFLINE, throttled=3),
    ),
    readings={
        "id-bare-1": last(1, None, None),
        "id-busy-1": last(5, 9.3, Provenance.SIMULATED),
        "id-done-1": last(40, 7.25, Provenance.MEASURED),
    },
)
SEEN = Seen(fleet=FLEET, at=NOW)


def screen(seen: Seen = SEEN, width: int = 80, height: int = 40, **view: object) -> list[str]:
    chosen = FleetView(interval_s=2.0, shortest_s=0.1, longest_s=60.0, **view)  # type: ignore[arg-type]
    return drawn(fleet_screen(seen, lines(seen, chosen.order), chosen, width, height), width)


def drawn(page: RenderableType, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, markup=False, emoji=False)
    console.print(page)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def row(shown: list[str], name: str) -> str:
    return re.sub(r"\s+", " ", next(line for line in shown if line.startswith(f"{name} ")))


@pytest.mark.parametrize("width", [80, 120])
def test_every_device_is_a_line_of_what_is_known_now(width):
    shown = screen(width=width)
    assert max(map(len, shown)) <= width
    assert "4 devices: 3 online, 1 busy, 2 idle, 1 offline, 1 throttled in 24 h" in shown
    assert "power now: 9.30 W simulated" in shown
    assert row(shown, "bare-1") == "bare-1 idle – none 52 1190 MODE_15W 0 1 s", "no sensor is a state, and not 0 W"
    assert re.fullmatch(r"busy-1 busy timed 21/36 mobi\S*.* 9.30 52 1190 MODE_15W 0 5 s", row(shown, "busy-1"))
    assert row(shown, "done-1") == "done-1 idle – – – – – 0 40 s", "an old reading says nothing of now"
    assert row(shown, "silent-1") == "silent-1 offline – – – – – 3 –"
    assert sum("simulated" in line for line in shown) == 2, "in the sum, and once above the column"


def test_powers_of_different_origin_say_theirs_and_are_not_added():
    both = replace(FLEET, readings={**FLEET.readings, "id-done-1": last(1, 7.25, Provenance.MEASURED)})
    shown = screen(replace(SEEN, fleet=both), width=120)
    assert "power now: 7.25 W measured, 9.30 W simulated" in shown
    assert "7.25 measured" in row(shown, "done-1")
    assert "9.30 simulated" in row(shown, "busy-1")


def test_the_chosen_device_is_told_in_full():
    told = " ".join(screen(chosen="id-busy-1"))
    assert "busy-1: busy; sweep 70b78d1a, 21/36 runs, about 15 min left; timed, about 14 s left; mobilenetv2, " in told
    assert "in 24 h 3 throttled runs" in " ".join(screen(chosen="id-silent-1"))


def test_a_server_that_does_not_answer_is_told_with_the_time_and_its_figures_fade():
    away = replace(SEEN, problem="no powerlab server answers.")
    soon, later = screen(replace(away, age_s=12.0)), screen(replace(away, age_s=31.0))
    assert f"No answer since {NOW.astimezone():%H:%M:%S} (12 s), asking again: no powerlab server answers." in soon
    assert " 9.30 " in row(soon, "busy-1")
    assert "power now: none is known" in later
    assert row(later, "busy-1").startswith("busy-1 unknown")
    assert " 9.30 " not in row(later, "busy-1")


def test_one_device_shows_its_rails_and_an_old_reading_is_none():
    at = NOW - timedelta(seconds=5)
    seen = replace(
        SEEN, device_id="id-busy-1", live=LiveRecord(readings=(ReadingRecord(at=at, seen=SNAPSHOT),), phase=None)
    )
    shown = screen(seen, chosen="id-busy-1", opened=True)
    assert row(shown, "ina3221:VDD") == "ina3221:VDD 12.50 12.50 12.50 █ simulated"
    assert row(shown, "rapl:package-0").startswith("rapl:package-0 unread – –")
    assert "rapl:package-0: denied: use sudo" in shown
    assert row(shown, "CPU 0-3") == "CPU 0-3 1190 2266 –"
    assert "read 5 s ago" in shown
    old = " ".join(screen(replace(seen, age_s=60.0), chosen="id-busy-1", opened=True))
    assert "The last reading is 1 min old and says nothing of now" in old
    assert "12.50" not in old


def test_keys_choose_open_and_sort():
    assert keys("\x1b[A\x1bOBkj\r\x1bq") == ["up", "down", "up", "down", "enter", "left", "q"]
    view, found = FleetView(interval_s=2.0, shortest_s=0.1, longest_s=60.0), lines(SEEN)
    for key in keys("jj"):
        view.steer(key, found)
    assert view.chosen == "id-done-1"
    for key in keys("jjjk\rs"):
        view.steer(key, found)
    assert (view.chosen, view.opened, view.by_name, view.order) == ("id-done-1", True, True, Order.NAME)
    for key in keys("\x1bsp"):
        view.steer(key, found)
    assert (view.opened, view.order, view.paused) == (False, Order.POWER, True)
    assert next(line.member.device.name for line in lines(SEEN, Order.POWER)) == "busy-1"
    assert [line.state for line in lines(SEEN, Order.STATE)] == ["busy", "idle", "idle", "offline"]


def test_a_low_terminal_keeps_the_chosen_device_in_sight():
    many = replace(FLEET, devices=tuple(member(f"nano-{index:02}") for index in range(50)), readings={})
    shown = screen(replace(SEEN, fleet=many), height=24, chosen="id-nano-33")
    assert len(shown) <= 24
    assert row(shown, "nano-33")
    assert "devices 28 to 39 of 50" in shown


def test_a_fleet_without_devices_says_what_to_do():
    assert any(
        "enrols it" in line for line in screen(Seen(fleet=FleetRecord(now=NOW, devices=(), readings={}), at=NOW))
    )
