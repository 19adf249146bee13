"""A simulated board warms up, takes clocks away above its trip, and gives them back when it has cooled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsons import EACH, IDS
from powerlab.boards.simulator import create_tree, layout, pacer
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.physics import Work
from powerlab.boards.simulator.warmth import Warmth
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign

CPU = "/sys/devices/system/cpu"
ZONE = "/sys/class/thermal/thermal_zone"
S = 1_000_000_000
EVERY = pytest.mark.parametrize(("name", "jetpack"), EACH, ids=IDS)


class Oven:
    """A busy board and its simulator, with a clock that the test moves."""

    def __init__(self, board: Sysroot) -> None:
        self.board, self.now_ns = board, 0
        self.simulator = Simulator(board)
        self.load = Load(board)
        self.load.publish(64)

    def room(self, celsius: float) -> None:
        self.board.path(layout.ROOM_FILE).write_text(f"{round(celsius * 1000)}\n")

    def run(self, seconds: float, step_s: float = 0.4) -> dict[str, float]:
        watts: dict[str, float] = {}
        for _ in range(round(seconds / step_s)):
            self.now_ns += round(step_s * S)
            watts = dict(self.simulator.tick(self.now_ns))
        return watts

    @property
    def clock_khz(self) -> int:
        return int(self.board.read(f"{CPU}/cpufreq/policy0/scaling_cur_freq"))

    @property
    def hottest_c(self) -> float:
        zones = [path for path in self.board.glob(f"{ZONE}*") if self.board.path(f"{path}/trip_point_0_temp").exists()]
        return max(int(self.board.read(f"{path}/temp")) / 1000 for path in zones)

    def close(self) -> None:
        self.load.close()
        self.simulator.close()


@pytest.fixture
def oven(name: str, jetpack: int, tmp_path: Path) -> Iterator[Oven]:
    create_tree(name, tmp_path / "tree", jetpack)
    oven = Oven(Sysroot(tmp_path / "tree"))
    yield oven
    oven.close()


@EVERY
def test_a_cool_room_takes_no_clock_away(name: str, jetpack: int, oven: Oven) -> None:
    start_khz = int(oven.board.read(f"{CPU}/cpufreq/policy0/scaling_max_freq"))
    oven.run(120)
    assert oven.clock_khz == start_khz
    assert 35.0 < oven.hottest_c < 90.0
    assert oven.board.read("/sys/class/thermal/cooling_device0/cur_state") == "0"


@EVERY
def test_above_the_trip_clocks_and_power_drop_until_it_cools(name: str, jetpack: int, oven: Oven) -> None:
    full_w, full_khz = oven.run(1), oven.clock_khz
    trip_c = int(oven.board.read(f"{ZONE}0/trip_point_0_temp")) / 1000
    oven.room(trip_c - 2.0)
    hot_w = oven.run(300)
    assert oven.clock_khz < full_khz
    assert int(oven.board.read("/sys/class/thermal/cooling_device0/cur_state")) > 0
    assert all(hot_w[rail] <= watts for rail, watts in full_w.items())
    assert sum(hot_w.values()) < sum(full_w.values())
    oven.room(10.0)
    oven.run(300)
    assert oven.clock_khz == full_khz
    assert oven.board.read("/sys/class/thermal/cooling_device0/cur_state") == "0"


@EVERY
def test_a_throttled_board_is_slower(name: str, jetpack: int, oven: Oven) -> None:
    pace = pacer(oven.board, 2)
    before_s = pace.seconds(Work(1e9, 1e8))
    pace.close()
    trip_c = int(oven.board.read(f"{ZONE}0/trip_point_0_temp")) / 1000
    oven.room(trip_c + 30.0)
    oven.run(120)
    pace = pacer(oven.board, 2)
    assert pace.seconds(Work(1e9, 1e8)) > before_s
    pace.close()


@EVERY
def test_sensors_that_always_say_the_same_go_on_doing_so(name: str, jetpack: int, oven: Oven) -> None:
    fixed = [path for path in oven.board.glob(f"{ZONE}*") if not oven.board.path(f"{path}/trip_point_0_temp").exists()]
    before = [oven.board.read(f"{path}/temp") for path in fixed]
    oven.room(80.0)
    oven.run(60)
    assert [oven.board.read(f"{path}/temp") for path in fixed] == before
    expected = {"-256000"} if jetpack >= 5 and "orin" in name else {"100000"}
    assert set(before) == expected


def test_no_clock_is_taken_below_a_fifth(board: Sysroot) -> None:
    oven = Oven(board)
    oven.room(500.0)
    oven.run(600)
    assert oven.clock_khz >= 0.15 * 2265600
    oven.close()


@given(st.floats(0.0, 100.0), st.lists(st.floats(0.001, 50.0), min_size=1, max_size=30))
def test_warmth_approaches_its_end_and_never_passes_it(watts: float, steps_s: list[float]) -> None:
    warmth = Warmth({"thermal": {"room_c": 20.0, "k_per_w": 2.0, "time_s": 10.0}})
    end_c = 20.0 + 2.0 * watts
    previous = warmth.celsius
    for step_s in steps_s:
        warmth.follow(watts, step_s)
        assert previous - 1e-9 <= warmth.celsius <= end_c + 1e-9
        previous = warmth.celsius


@given(st.floats(0.0, 100.0), st.floats(0.1, 100.0), st.integers(1, 50))
def test_how_often_one_looks_does_not_change_the_warmth(watts: float, time_s: float, looks: int) -> None:
    once, often = Warmth({}), Warmth({})
    once.follow(watts, time_s)
    for _ in range(looks):
        often.follow(watts, time_s / looks)
    assert often.celsius == pytest.approx(once.celsius)
