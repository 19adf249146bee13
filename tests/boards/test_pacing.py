from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree, layout, pacer, pacing
from powerlab.boards.simulator.load import busy_threads, load_now
from powerlab.boards.simulator.pacing import SimulatedPacer
from powerlab.boards.simulator.physics import PowerModel, Work, inference_s
from powerlab.boards.simulator.state import read_settings
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

SIMULATION = layout.simulation_of("jetson-agx-xavier")
MODEL = PowerModel.from_document(SIMULATION)
ARITHMETIC = Work(flops=1e9, bytes_moved=0.0, calls=0.0)
TRAFFIC = Work(flops=0.0, bytes_moved=1e9, calls=0.0)
WORK = Work(flops=1e9, bytes_moved=1e8)
CPU = "/sys/devices/system/cpu"
EMC_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"


class Clock:
    """A clock that moves when somebody sleeps, and wakes him too late where it is told to."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000
        self.late_s = 0.0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.now_ns += round((seconds + self.late_s) * 1e9)


class Level(random.Random):
    """Noise that is none."""

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> float:
        return mu


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pacing, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


def duration_s(board: Sysroot, clock: Clock, threads: int, work: Work = WORK, *, host_s: float = 0.0) -> float:
    """Return how long an inference takes; ``host_s`` of it this machine does something."""
    pace = SimulatedPacer(board, threads, Level())
    start_ns = clock.now_ns
    with pace.inference(work):
        clock.sleep(host_s)
    pace.close()
    return (clock.now_ns - start_ns) / 1e9


def test_a_real_machine_is_left_alone(tmp_path: Path) -> None:
    pace = pacer(Sysroot(tmp_path), 6)
    assert pace.host_threads == 6
    assert pace.computes
    assert pace.seconds(WORK) == 0.0
    start = time.monotonic()
    for _ in range(100):
        with pace.inference():
            pass
    assert time.monotonic() - start < 10.0
    pace.close()
    assert list(tmp_path.iterdir()) == []


def test_what_this_machine_does_meanwhile_costs_no_time(board: Sysroot, clock: Clock) -> None:
    alone_s = duration_s(board, clock, 1)
    assert duration_s(board, clock, 1, host_s=0.02) == pytest.approx(alone_s)
    assert not SimulatedPacer(board, 1).computes


@pytest.mark.parametrize("late_s", [0.0, 0.0001, 0.002])
def test_a_machine_that_wakes_the_worker_late_does_not_slow_the_board(
    board: Sysroot, clock: Clock, late_s: float
) -> None:
    pace = SimulatedPacer(board, 8, Level())
    clock.late_s, start_ns = late_s, clock.now_ns
    for _ in range(100):
        with pace.inference(WORK):
            pass
    pace.close()
    expected_s = 100 * inference_s(MODEL, read_settings(board, SIMULATION).state(8), WORK)
    assert (clock.now_ns - start_ns) / 1e9 == pytest.approx(expected_s + late_s, rel=1e-6)


def test_parts_of_a_step_follow_each_other_each_with_its_own_switching(
    board: Sysroot, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace, seen = SimulatedPacer(board, 8, Level()), []
    monkeypatch.setattr(clock, "sleep", lambda seconds: (seen.append(load_now(board)), Clock.sleep(clock, seconds)))
    took_ns = pace.parts([(WORK, 1.1), (TRAFFIC, 0.5)])
    assert [(load.threads, load.activity) for load in seen] == [(8, 1.1), (8, 0.5)]
    assert [ns / 1e9 for ns in took_ns] == pytest.approx([pace.seconds(work) for work in (WORK, TRAFFIC)])
    assert load_now(board) == (0, 1.0, 0.0)
    pace.close()


def test_a_long_interruption_is_not_followed_by_a_burst(board: Sysroot, clock: Clock) -> None:
    pace = SimulatedPacer(board, 1, Level())
    usual_s = duration_s(board, clock, 1)
    with pace.inference(WORK):
        clock.sleep(60.0)
    took_s = []
    for _ in range(3):
        start_ns = clock.now_ns
        with pace.inference(WORK):
            pass
        took_s.append((clock.now_ns - start_ns) / 1e9)
    pace.close()
    assert took_s == pytest.approx([usual_s / 2, usual_s, usual_s])


def test_inferences_differ_a_little_and_so_do_runs(board: Sysroot, clock: Clock) -> None:
    means_s = []
    for seed in range(20):
        pace = SimulatedPacer(board, 4, random.Random(seed))
        took_s = []
        for _ in range(200):
            start_ns = clock.now_ns
            with pace.inference(WORK):
                pass
            took_s.append((clock.now_ns - start_ns) / 1e9)
        pace.close()
        assert statistics.stdev(took_s) / statistics.mean(took_s) == pytest.approx(pacing.JITTER, rel=0.25)
        means_s.append(statistics.mean(took_s))
    modelled_s = inference_s(MODEL, read_settings(board, SIMULATION).state(4), WORK)
    assert statistics.mean(means_s) == pytest.approx(modelled_s, rel=0.002)
    assert pacing.RUN_JITTER / 2 < statistics.stdev(means_s) / modelled_s < 2 * pacing.RUN_JITTER


def test_the_engine_uses_the_threads_it_can_have(board: Sysroot) -> None:
    for threads, really in ((1, 1), (2, 2), (3, 2), (8, 2)):
        pace = pacer(board, threads)
        assert pace.host_threads == really
        pace.close()


@pytest.mark.parametrize("host_cores", [1, 2, 64])
def test_an_inference_takes_as_long_as_the_model_says_whatever_this_machine_has(
    board: Sysroot, clock: Clock, monkeypatch: pytest.MonkeyPatch, host_cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(host_cores)))
    settings = read_settings(board, SIMULATION)
    for threads in range(1, 9):
        expected_s = inference_s(MODEL, settings.state(threads), WORK)
        assert duration_s(board, clock, threads) == pytest.approx(expected_s)


def test_a_capped_clock_is_slower_in_proportion(board: Sysroot, clock: Clock) -> None:
    fast_s = duration_s(board, clock, 1, ARITHMETIC)
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("1190400\n")
    assert duration_s(board, clock, 1, ARITHMETIC) / fast_s == pytest.approx(2265600 / 1190400)
    assert duration_s(board, clock, 1, TRAFFIC) == pytest.approx(1 / 80), "the memory keeps its clock"


def test_more_threads_than_online_cores_are_no_faster(board: Sysroot, clock: Clock) -> None:
    for core in range(4, 8):
        board.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    assert duration_s(board, clock, 8) == duration_s(board, clock, 4)


def test_a_mode_that_changes_between_inferences_is_followed(board: Sysroot, clock: Clock) -> None:
    pace = pacer(board, 1)
    before_s = pace.seconds(ARITHMETIC)
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("1190400\n")
    clock.sleep(1.0)
    assert pace.seconds(ARITHMETIC) == pytest.approx(before_s * 2265600 / 1190400)
    pace.close()


def test_a_file_that_is_just_being_written_does_not_stop_a_worker(board: Sysroot, clock: Clock) -> None:
    pace = pacer(board, 1)
    before_s = pace.seconds(ARITHMETIC)
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("")
    clock.sleep(1.0)
    assert pace.seconds(ARITHMETIC) == before_s
    pace.close()


def test_a_board_without_a_core_on_line_is_damaged(board: Sysroot) -> None:
    for core in range(8):
        board.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    with pytest.raises(PowerlabError, match="no core is online"):
        pacer(board, 1)


def test_the_load_is_there_while_it_runs_and_gone_after_even_after_a_failure(board: Sysroot) -> None:
    pace = pacer(board, 8)
    with pace.inference():
        assert busy_threads(board) == 8
    assert busy_threads(board) == 0
    with pytest.raises(RuntimeError), pace.inference():
        raise RuntimeError
    assert busy_threads(board) == 0
    pace.close()
    assert list(board.path(layout.LOAD_DIRECTORY).iterdir()) == []


@pytest.mark.parametrize("damage", ["/sys/devices/system/cpu/cpu3/online", EMC_CAP])
def test_a_damaged_tree_is_told_in_words(board: Sysroot, damage: str) -> None:
    board.path(damage).unlink()
    with pytest.raises(PowerlabError, match="is damaged"):
        pacer(board, 1)
    board.path(SIMULATION_MARKER).write_text("{}")
    with pytest.raises(PowerlabError, match="is not a simulated board"):
        pacer(board, 1)


def set_quota(board: Sysroot, text: str) -> None:
    board.path(f"{layout.CGROUP}/cpu.max").write_text(text + "\n")


def test_a_quota_below_the_threads_stretches_them(board: Sysroot, clock: Clock) -> None:
    free = duration_s(board, clock, 4)
    set_quota(board, "100000 100000")
    assert duration_s(board, clock, 4) == pytest.approx(4 * free)
    set_quota(board, "150000 100000")
    assert duration_s(board, clock, 4) == pytest.approx(4 / 1.5 * free)


@pytest.mark.parametrize("text", ["max 100000", "800000 100000", "max", ""])
def test_a_quota_that_leaves_room_changes_nothing(board: Sysroot, clock: Clock, text: str) -> None:
    free = duration_s(board, clock, 4)
    set_quota(board, text)
    assert duration_s(board, clock, 4) == free


def test_clocks_that_heat_has_taken_away_slow_the_load(board: Sysroot, clock: Clock) -> None:
    cool_s = duration_s(board, clock, 2, ARITHMETIC)
    board.path(layout.CAPS_FILE).write_text("cpu 0.600\ngpu 0.600\n")
    hot_s = duration_s(board, clock, 2, ARITHMETIC)
    assert hot_s / cool_s == pytest.approx(2265600 / 1344000), "the table's highest clock below 60 %"


def test_slower_memory_slows_what_moves_bytes(board: Sysroot, clock: Clock) -> None:
    fast_s = [duration_s(board, clock, 2, work) for work in (ARITHMETIC, TRAFFIC)]
    board.path(EMC_CAP).write_text("1066500000\n")
    slow_s = [duration_s(board, clock, 2, work) for work in (ARITHMETIC, TRAFFIC)]
    assert slow_s == pytest.approx([fast_s[0], 2 * fast_s[1]])


def test_the_slower_kind_of_core_takes_longer(tmp_path: Path, clock: Clock) -> None:
    create_tree("jetson-tx2", tmp_path / "tree")
    tx2 = Sysroot(tmp_path / "tree")
    settings = read_settings(tx2, layout.simulation_of("jetson-tx2"))
    assert [core.speed for core in settings.state(0).cores] == [0.8] * 4 + [1.0] * 2
    four_s = duration_s(tx2, clock, 4, ARITHMETIC)
    for core in (3, 4):
        tx2.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    assert duration_s(tx2, clock, 4, ARITHMETIC) < four_s, "two Denver cores in place of two A57"
