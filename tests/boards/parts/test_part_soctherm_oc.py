"""The simulated over-current chip counts events and throttles, as the watch on it expects."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.soctherm_oc import SocthermOc
from powerlab.boards.simulator.state import Settings
from powerlab.sysroot import Sysroot

ORINS = ["jetson-agx-orin", "jetson-orin-nano", "jetson-orin-nx"]
CPU = "/sys/devices/system/cpu"
STEP_NS = 100_000_000


@pytest.fixture(params=ORINS)
def orin(request: pytest.FixtureRequest, tmp_path: Path) -> Sysroot:
    create_tree(request.param, tmp_path / "tree")
    return Sysroot(tmp_path / "tree")


@pytest.fixture
def simulator(orin: Sysroot) -> Iterator[Simulator]:
    with Load(orin) as load:
        load.publish(64)
        simulator = Simulator(orin)
        yield simulator
        simulator.close()


def chip(board: Sysroot) -> str:
    (found,) = (path for path in board.glob("/sys/class/hwmon/hwmon*") if board.read(f"{path}/name") == "soctherm_oc")
    return found


def counts(board: Sysroot) -> list[int]:
    return [int(board.read(f"{chip(board)}/oc{event}_event_cnt")) for event in (1, 2, 3)]


def clock_khz(board: Sysroot) -> int:
    return int(board.read(f"{CPU}/cpufreq/policy0/scaling_cur_freq"))


def run(simulator: Simulator, first: int, steps: int) -> int:
    for step in range(first, first + steps):
        simulator.tick(step * STEP_NS)
    return first + steps


def set_faults(board: Sysroot, *names: str) -> None:
    board.path(layout.FAULTS_FILE).write_text("\n".join(names) + "\n")


def test_only_orins_have_the_chip() -> None:
    simulated = {board.name for board in BOARDS.values() if board.simulatable}
    assert {name for name in simulated if "soctherm_oc" in layout.simulation_of(name)} == set(ORINS)


def test_it_is_a_hwmon_chip_with_three_counters_and_switches(orin: Sysroot) -> None:
    assert counts(orin) == [0, 0, 0]
    assert [orin.read(f"{chip(orin)}/oc{event}_throt_en") for event in (1, 2, 3)] == ["1", "1", "1"]
    others = [orin.read(f"{path}/name") for path in orin.glob("/sys/class/hwmon/hwmon*")]
    assert others.count("ina3221") == len(others) - 1, "no number is taken twice"


def test_a_board_within_its_limits_counts_nothing(orin: Sysroot, simulator: Simulator) -> None:
    run(simulator, 0, 50)
    assert counts(orin) == [0, 0, 0]


def test_an_over_current_is_counted_and_halves_the_clocks_while_it_lasts(orin: Sysroot, simulator: Simulator) -> None:
    step = run(simulator, 0, 10)
    full_khz, full_w = clock_khz(orin), dict(simulator.tick(step * STEP_NS))
    set_faults(orin, "over-current")
    step = run(simulator, step + 1, 20)
    assert counts(orin)[2] > 1
    assert counts(orin)[:2] == [0, 0]
    assert clock_khz(orin) < full_khz
    assert sum(simulator.tick(step * STEP_NS).values()) < sum(full_w.values())
    set_faults(orin)
    step = run(simulator, step + 1, 20)
    after = counts(orin)
    run(simulator, step, 20)
    assert counts(orin) == after, "counters keep what they counted"
    assert clock_khz(orin) == full_khz


def test_a_board_told_not_to_throttle_only_counts(orin: Sysroot, simulator: Simulator) -> None:
    orin.path(f"{chip(orin)}/oc3_throt_en").write_text("0\n")
    step = run(simulator, 0, 10)
    full_khz = clock_khz(orin)
    set_faults(orin, "over-current")
    run(simulator, step, 20)
    assert counts(orin)[2] > 0
    assert clock_khz(orin) == full_khz


def moment(rails_w: dict[str, float], passed_s: float) -> Moment:
    settings = Settings(policies=())
    return Moment(
        now_ns=0,
        passed_s=passed_s,
        rails_w=rails_w,
        components_w={},
        energy_j={},
        state=settings.state(0),
        settings=settings,
        looked=True,
        warmth_c=30.0,
        noise=random.Random(1),
        faults=frozenset(),
    )


def test_more_power_than_the_limit_is_an_average_over_current_twice_a_second(orin: Sysroot) -> None:
    board = BOARDS[layout.read_marker(orin)["board"]]
    table = layout.simulation_of(board.name)["soctherm_oc"]
    part = SocthermOc(board, table, "jetpack5")
    part.open(orin)
    little, much = (dict.fromkeys(table["rails"], watts) for watts in (0.1, table["limit_w"] + 1.0))
    part.tick(moment(little, 0.0))
    assert part.caps()["cpu"] == 1.0
    for _ in range(17):
        part.tick(moment(much, 0.125))
    assert counts(orin) == [0, 5, 0]
    assert part.caps()["cpu"] < 1.0
    part.tick(moment(little, 0.1))
    assert part.caps()["cpu"] == 1.0
