"""Simulated x86 packages that are too hot count it, and the watch for throttling reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.x86_throttle import X86Throttle

FOLDER = "/sys/devices/system/cpu/cpu3/thermal_throttle"
TICK_NS = 10_000_000


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    create_tree("laptop", tmp_path / "board")
    return Sysroot(tmp_path / "board")


def run(simulator: Simulator, first_tick: int, ticks: int) -> int:
    for tick in range(first_tick, first_tick + ticks):
        simulator.tick(tick * TICK_NS)
    return first_tick + ticks


def test_a_cool_laptop_counts_nothing(board: Sysroot, simulator: Simulator) -> None:
    watching = X86Throttle().start(board)
    with Load(board) as load:
        load.publish(8)
        run(simulator, 0, 300)
    assert board.read(f"{FOLDER}/package_throttle_count") == "0"
    assert watching.finish() == ()


def test_a_hot_room_is_counted_and_told(board: Sysroot, simulator: Simulator) -> None:
    assert X86Throttle().probe(board).availability is Availability.AVAILABLE
    watching = X86Throttle().start(board)
    board.path(layout.ROOM_FILE).write_text("120000\n")
    with Load(board) as load:
        load.publish(8)
        run(simulator, 0, 3000)
    assert int(board.read(f"{FOLDER}/package_throttle_count")) == 1
    assert int(board.read(f"{FOLDER}/package_throttle_total_time_ms")) > 1000
    assert board.read(f"{FOLDER}/core_throttle_count") == "0"
    (sentence,) = watching.finish()
    assert "package" in sentence
    assert "heat" in sentence


@pytest.mark.campaign
def test_it_counts_again_after_it_has_cooled(board: Sysroot, simulator: Simulator) -> None:
    tick = 0
    for room in ("120000", "20000", "120000"):
        board.path(layout.ROOM_FILE).write_text(f"{room}\n")
        tick = run(simulator, tick, 4000)
    assert int(board.read(f"{FOLDER}/package_throttle_count")) == 2
