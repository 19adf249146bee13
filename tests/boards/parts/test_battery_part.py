"""The simulated battery: it empties by what the machine draws, and charges when the charger is plugged in."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.domain.power import Availability
from powerlab.power.base import PolledChannel
from powerlab.power.sources.battery.source import Battery
from powerlab.sysroot import Sysroot

TICK_NS = 10_000_000
BATTERY = "/sys/class/power_supply/BAT0"
AC = "/sys/class/power_supply/AC/online"


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    create_tree("laptop", tmp_path / "board")
    return Sysroot(tmp_path / "board")


def run(simulator: Simulator, first_tick: int, ticks: int, step_ns: int = TICK_NS) -> dict[str, float]:
    rails: dict[str, float] = {}
    for tick in range(first_tick, first_tick + ticks):
        rails = simulator.tick(tick * step_ns)
    return rails


def number(board: Sysroot, name: str) -> int:
    return int(board.read(f"{BATTERY}/{name}"))


def test_its_power_is_the_machine_s_with_the_battery_s_own_losses(board: Sysroot, simulator: Simulator) -> None:
    with Load(board) as load:
        load.publish(4)
        rails = run(simulator, 0, 220)
    (channel,) = Battery().channels(board)
    assert isinstance(channel, PolledChannel)
    assert channel.read() == pytest.approx(rails["BAT0"], rel=0.03)
    assert rails["BAT0"] > rails["psys"] > rails["package-0"]


def test_it_empties_by_the_energy_drawn(board: Sysroot, simulator: Simulator) -> None:
    """An hour passes in steps of 10 s."""
    before_uwh = number(board, "energy_now")
    rails = run(simulator, 0, 361, step_ns=10_000_000_000)
    assert before_uwh - number(board, "energy_now") == pytest.approx(rails["BAT0"] * 1e6, abs=20_000)
    assert number(board, "capacity") == round(100 * number(board, "energy_now") / number(board, "energy_full"))


def test_plugging_in_turns_the_flow_round_and_unplugging_back(board: Sysroot, simulator: Simulator) -> None:
    run(simulator, 0, 10)
    assert Battery().probe(board).availability is Availability.AVAILABLE
    board.path(AC).write_text("1\n")
    run(simulator, 10, 250)
    assert board.read(f"{BATTERY}/status") == "Charging"
    assert number(board, "power_now") == pytest.approx(38_000_000, rel=0.03)
    probe = Battery().probe(board)
    assert (probe.availability, probe.rails) == (Availability.ABSENT, ())
    assert "unplug the charger" in probe.remedy
    board.path(AC).write_text("0\n")
    run(simulator, 260, 250)
    assert board.read(f"{BATTERY}/status") == "Discharging"
    assert Battery().probe(board).availability is Availability.AVAILABLE


def test_it_never_holds_more_than_it_can(board: Sysroot, simulator: Simulator) -> None:
    board.path(AC).write_text("1\n")
    run(simulator, 0, 3000, step_ns=10_000_000_000)
    assert number(board, "energy_now") == number(board, "energy_full")
    assert number(board, "capacity") == 100


def test_the_mouse_s_battery_is_not_the_machine_s(board: Sysroot) -> None:
    assert board.read("/sys/class/power_supply/hidpp_battery_0/status") == "Discharging"
    (rail,) = Battery().probe(board).rails
    assert rail.name == "BAT0"
