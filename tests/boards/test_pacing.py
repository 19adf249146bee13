from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import create_tree, layout, pacer, pacing
from powerlab.boards.simulator.load import busy_threads
from powerlab.boards.simulator.pacing import SimulatedPacer, slowest_factor
from powerlab.boards.simulator.physics import PowerModel, speedup
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

MODEL = PowerModel.from_document(layout.simulation_of("jetson-agx-xavier"))
CPU = "/sys/devices/system/cpu"
EMC_CAP = "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap"


class Clock:
    """Clocks that move when somebody sleeps or works."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000
        self.cpu_ns = 500_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def process_time_ns(self) -> int:
        return self.cpu_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def work(self, seconds: float, cores: int) -> None:
        self.sleep(seconds)
        self.cpu_ns += round(seconds * 1e9) * cores


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(pacing, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


def stretched(slower_clock: float) -> float:
    """How much longer it takes at a slower clock: the share that waits for the memory takes as long as before."""
    return (1.0 - MODEL.memory_bound) * slower_clock + MODEL.memory_bound


def duration_s(board: Sysroot, clock: Clock, threads: int, host_s: float = 0.03, *, others_s: float = 0.0) -> float:
    """Return how long an inference takes; ``others_s`` of it other processes have the host's cores."""
    pace = pacer(board, threads)
    start_ns = clock.now_ns
    with pace.inference():
        clock.work(host_s, pace.host_threads)
        clock.sleep(others_s)
    pace.close()
    return (clock.now_ns - start_ns) / 1e9


def test_a_real_machine_is_left_alone(tmp_path: Path) -> None:
    pace = pacer(Sysroot(tmp_path), 6)
    assert pace.host_threads == 6
    start = time.monotonic()
    for _ in range(100):
        with pace.inference():
            pass
    assert time.monotonic() - start < 10.0
    pace.close()
    assert list(tmp_path.iterdir()) == []


def test_what_else_runs_on_the_host_does_not_slow_the_board(board: Sysroot, clock: Clock) -> None:
    alone = duration_s(board, clock, 1)
    assert duration_s(board, clock, 1, others_s=0.02) == pytest.approx(alone)
    assert duration_s(board, clock, 1, others_s=10.0) > 10.0, "no inference is shorter than the real one"


@given(st.integers(1, 8), st.integers(1, 64))
def test_no_simulated_inference_is_shorter_than_the_real_one(threads: int, host_cores: int) -> None:
    constant = slowest_factor(MODEL, 8, host_cores)
    assert min(threads, host_cores) * constant / speedup(MODEL, threads, 8) >= 1.0 - 1e-12


def test_the_engine_uses_the_threads_it_can_have(board: Sysroot) -> None:
    for threads, really in ((1, 1), (2, 2), (3, 2), (8, 2)):
        pace = pacer(board, threads)
        assert pace.host_threads == really
        pace.close()


def test_an_inference_takes_as_long_as_on_the_board(board: Sysroot, clock: Clock) -> None:
    constant = slowest_factor(MODEL, 8, 2)
    assert duration_s(board, clock, 1) == pytest.approx(0.03 * constant)
    assert duration_s(board, clock, 4) == pytest.approx(0.03 * 2 * constant / speedup(MODEL, 4, 8))
    assert duration_s(board, clock, 8) == pytest.approx(0.03)


def test_a_capped_clock_is_slower_in_proportion(board: Sysroot, clock: Clock) -> None:
    fast = duration_s(board, clock, 1)
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("1190400\n")
    slow = duration_s(board, clock, 1)
    assert slow / fast == pytest.approx(stretched(2265600 / 1190400))
    assert slow < 1.5, "a sweep of slow modes stays bearable"


def test_more_threads_than_online_cores_are_no_faster(board: Sysroot, clock: Clock) -> None:
    for core in range(4, 8):
        board.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    assert duration_s(board, clock, 8) == duration_s(board, clock, 4)


def test_a_mode_that_changes_between_inferences_is_followed(board: Sysroot, clock: Clock) -> None:
    pace = pacer(board, 1)
    assert isinstance(pace, SimulatedPacer)
    before = pace.stretch()
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("1190400\n")
    clock.sleep(1.0)
    assert pace.stretch() == pytest.approx(before * stretched(2265600 / 1190400))
    pace.close()


def test_a_file_that_is_just_being_written_does_not_stop_a_worker(board: Sysroot, clock: Clock) -> None:
    pace = pacer(board, 1)
    assert isinstance(pace, SimulatedPacer)
    before = pace.stretch()
    board.path(f"{CPU}/cpufreq/policy0/scaling_max_freq").write_text("")
    clock.sleep(1.0)
    assert pace.stretch() == before
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
    with pytest.raises(PowerlabError, match="is no simulated board"):
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
    cool = duration_s(board, clock, 2)
    board.path(layout.CAPS_FILE).write_text("cpu 0.600\ngpu 0.600\n")
    hot = duration_s(board, clock, 2)
    assert hot / cool == pytest.approx(stretched(2265600 / 1344000)), "the table's highest clock below 60 %"


def test_slower_memory_slows_the_share_that_waits_for_it(board: Sysroot, clock: Clock) -> None:
    fast = duration_s(board, clock, 2)
    board.path(EMC_CAP).write_text("1066500000\n")
    assert duration_s(board, clock, 2) / fast == pytest.approx(1.0 + MODEL.memory_bound)


def test_the_slower_kind_of_core_takes_longer(tmp_path: Path, clock: Clock) -> None:
    create_tree("jetson-tx2", tmp_path / "tree")
    tx2 = Sysroot(tmp_path / "tree")
    a57 = duration_s(tx2, clock, 1)
    for core in (3, 4, 5):
        tx2.path(f"{CPU}/cpu{core}/online").write_text("0\n")
    mixed = duration_s(tx2, clock, 2) * 2 / 1.9
    assert mixed < a57
