"""The simulated CPU: hotplug, clocks, preferences and processor time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.parts.cpu_time import PATH, CpuTime
from powerlab.boards.simulator.physics import BoardState, Core
from powerlab.sysroot import Sysroot
from powerlab.throttling.busy_cores import busy_between, parse_ticks, read_ticks

CPU = "/sys/devices/system/cpu"
TICK_NS = 10_000_000
Put = Callable[[str, str], None]


@pytest.fixture
def simulator(board: Sysroot) -> Iterator[Simulator]:
    simulator = Simulator(board)
    yield simulator
    simulator.close()


@pytest.fixture
def put(board: Sysroot) -> Put:
    return lambda path, value: layout.rewrite(board.path(path), value)


def run(simulator: Simulator, first: int, ticks: int) -> None:
    for tick in range(first, first + ticks):
        simulator.tick(tick * TICK_NS)


def test_cores_that_work_are_those_that_proc_stat_shows_busy(board: Sysroot, simulator: Simulator) -> None:
    run(simulator, 0, 6)
    before = read_ticks(board)
    with Load(board) as load:
        load.publish(3)
        run(simulator, 6, 50)
        after = read_ticks(board)
        run(simulator, 56, 1)
    assert busy_between(before, after) == frozenset({0, 1, 2})
    assert set(after) == set(range(8))
    total = [after[core][1] - before[core][1] for core in range(8)]
    assert total == [total[0]] * 8
    assert total[0] == pytest.approx(50, abs=6), "a tick a hundredth of a second"


def test_a_quota_shows_as_idle_time(board: Sysroot, simulator: Simulator, put: Put) -> None:
    board.path(f"{layout.CGROUP}/cpu.max").write_text("100000 100000\n")
    run(simulator, 0, 6)
    before = read_ticks(board)
    with Load(board) as load:
        load.publish(4)
        run(simulator, 6, 100)
        after = read_ticks(board)
    assert busy_between(before, after) == frozenset()
    work = sum(after[core][0] - before[core][0] for core in range(4))
    assert work == pytest.approx(100, abs=10), "one core's time, over four"


def test_cores_that_are_off_line_have_no_line(board: Sysroot, simulator: Simulator, put: Put) -> None:
    put(f"{CPU}/cpu7/online", "0")
    run(simulator, 0, 12)
    assert set(read_ticks(board)) == set(range(7))


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 10.0)), max_size=20))
def test_busy_and_idle_time_add_up_to_the_time_that_passed(steps: list[tuple[int, float]]) -> None:
    time = CpuTime(range(4))
    cores = (Core(busy_khz=1, idle_khz=1),) * 4
    for threads, passed_s in steps:
        time.pass_time(range(4), BoardState(cores=cores, busy_threads=threads), passed_s)
    found = parse_ticks(time.text(range(4)))
    passed = 100 * sum(passed_s for _, passed_s in steps)
    assert set(found) == {0, 1, 2, 3}
    assert all(total == pytest.approx(passed, abs=1.01) for _, total in found.values())
    work = 100 * sum(min(threads, 4) * passed_s for threads, passed_s in steps)
    assert sum(busy for busy, _ in found.values()) == pytest.approx(work, abs=2.01)


def test_the_text_keeps_its_length_so_that_no_reader_sees_half_of_it() -> None:
    time = CpuTime(range(2))
    first = time.text(range(2))
    time.pass_time(range(2), BoardState(cores=(Core(busy_khz=1, idle_khz=1),) * 2, busy_threads=1), 1e6)
    assert len(time.text(range(2))) == len(first)


def test_a_busy_cluster_shows_its_high_clock_and_an_idle_one_its_low_one(board: Sysroot, simulator: Simulator) -> None:
    with Load(board) as load:
        load.publish(3)
        run(simulator, 0, 6)
        clocks = [board.read(f"{CPU}/cpufreq/policy{first}/scaling_cur_freq") for first in (0, 2, 4, 6)]
    assert clocks == ["2265600", "2265600", "1190400", "1190400"]


def test_cores_come_back_on_line(board: Sysroot, simulator: Simulator, put: Put) -> None:
    put(f"{CPU}/cpu5/online", "0")
    run(simulator, 0, 6)
    assert board.read(f"{CPU}/offline") == "5"
    put(f"{CPU}/cpu5/online", "1")
    run(simulator, 6, 6)
    assert board.read(f"{CPU}/offline") == ""
    assert board.read(f"{CPU}/cpufreq/policy4/affected_cpus") == "4 5"


def test_a_fresh_tree_already_has_processor_times(board: Sysroot) -> None:
    assert set(read_ticks(board)) == set(range(8))
    assert board.path(PATH).read_text().startswith("cpu  ")
