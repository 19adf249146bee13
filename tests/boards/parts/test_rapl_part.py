"""The simulated RAPL: counters of 32 bits that wrap, and limits that really limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.pacing import SimulatedPacer
from powerlab.boards.simulator.parts.rapl import Limit, Limiter, Rapl
from powerlab.boards.simulator.physics import Work
from powerlab.modes.knobs.rapl_limit import RaplLimit
from powerlab.power.sources.rapl import Rapl as RaplSource
from powerlab.sysroot import Sysroot

POWERCAP = "/sys/class/powercap"
TICK_NS = 10_000_000
RANGE_UJ = 262143328850


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    create_tree("intel-xeon", tmp_path / "board")
    return Sysroot(tmp_path / "board")


def counter_uj(board: Sysroot, zone: str) -> int:
    return int(board.read(f"{POWERCAP}/{zone}/energy_uj"))


def run(simulator: Simulator, seconds: float, start_tick: int = 0) -> tuple[int, dict[str, float]]:
    """Tick on; return the next tick and the mean power of each rail over the last second."""
    ticks = round(seconds * 100)
    last: list[dict[str, float]] = []
    for tick in range(start_tick, start_tick + ticks):
        last = [*last[-99:], simulator.tick(tick * TICK_NS)]
    return start_tick + ticks, {rail: sum(entry[rail] for entry in last) / len(last) for rail in last[0]}


def part() -> Rapl:
    return Rapl(find_board("intel-xeon"), layout.simulation_of("intel-xeon")["rapl"], "")


@given(st.floats(1.0, 262_143.0), st.lists(st.floats(0.0, 1e5), max_size=20))
def test_a_counter_never_leaves_its_range_and_counts_what_was_drawn(before_wrap_j: float, steps: list[float]) -> None:
    rapl, energy_j = part(), 0.0
    last = rapl.counter_uj(before_wrap_j, 0.0)
    assert last == pytest.approx((262_143.32885 - before_wrap_j) * 1e6, abs=200)
    for step in steps:
        energy_j += step
        now = rapl.counter_uj(before_wrap_j, energy_j)
        assert 0 <= now <= RANGE_UJ
        assert (now - last) % (RANGE_UJ + 61) == pytest.approx(step * 1e6, abs=130)
        last = now


def test_the_first_package_wraps_within_seconds_of_idling(board: Sysroot, simulator: Simulator) -> None:
    before = counter_uj(board, "intel-rapl:0")
    other = counter_uj(board, "intel-rapl:1")
    run(simulator, 9.0)
    assert counter_uj(board, "intel-rapl:0") < before
    assert counter_uj(board, "intel-rapl:1") > other


def test_all_zones_lie_side_by_side_and_lead_to_their_parents(board: Sysroot) -> None:
    zones = [path.rpartition("/")[2] for path in board.glob(f"{POWERCAP}/intel-rapl:*")]
    assert zones == ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:1:0"]
    child = board.path(f"{POWERCAP}/intel-rapl:1:0").resolve()
    assert child.parent == board.path(f"{POWERCAP}/intel-rapl:1").resolve()
    assert board.read(f"{POWERCAP}/intel-rapl/enabled") == "1"


def test_counters_and_knob_are_found_by_those_who_look_for_them(board: Sysroot) -> None:
    assert len(RaplSource().channels(board)) == 4
    assert RaplLimit().probe(board).availability == "available"


def test_a_limit_below_the_demand_lowers_the_clocks_and_the_power_to_it(board: Sysroot, simulator: Simulator) -> None:
    limit = board.path(f"{POWERCAP}/intel-rapl:0/constraint_0_power_limit_uw")
    with Load(board) as load:
        load.publish(16)
        tick, mean_w = run(simulator, 6.0)
        assert mean_w["package-0"] == pytest.approx(150.0, rel=0.06), "the limit it was built with"
        limit.write_text("80000000\n")
        tick, mean_w = run(simulator, 6.0, tick)
        assert mean_w["package-0"] == pytest.approx(80.0, rel=0.08)
        frequency = int(board.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq"))
        assert frequency < 3_400_000
        limit.write_text("150000000\n")
        tick, mean_w = run(simulator, 8.0, tick)
        assert mean_w["package-0"] == pytest.approx(150.0, rel=0.06), "and back"


def test_a_limit_makes_inferences_slower(board: Sysroot, simulator: Simulator) -> None:
    pacer = SimulatedPacer(board, threads=16)
    free_s = pacer.seconds(Work(1e9, 1e8))
    pacer.close()
    board.path(f"{POWERCAP}/intel-rapl:0/constraint_0_power_limit_uw").write_text("60000000\n")
    with Load(board) as load:
        load.publish(16)
        run(simulator, 5.0)
        pacer = SimulatedPacer(board, threads=16)
        assert pacer.seconds(Work(1e9, 1e8)) > 1.2 * free_s
        pacer.close()


def test_a_light_load_never_meets_the_limit(board: Sysroot, simulator: Simulator) -> None:
    with Load(board) as load:
        load.publish(4)
        run(simulator, 4.0)
    assert {line.partition(" ")[2] for line in board.read(layout.CAPS_FILE).splitlines()} <= {"1.000"}


def test_a_limit_that_is_switched_off_limits_nothing(board: Sysroot, simulator: Simulator) -> None:
    board.path(f"{POWERCAP}/intel-rapl:0/constraint_0_power_limit_uw").write_text("50000000\n")
    board.path(f"{POWERCAP}/intel-rapl:0/enabled").write_text("0\n")
    with Load(board) as load:
        load.publish(16)
        _, mean_w = run(simulator, 3.0)
    assert mean_w["package-0"] > 150.0


def test_the_mean_may_stay_below_the_limit_while_a_burst_is_above() -> None:
    limit = Limit("", "", limit_w=100.0, window_s=10.0)
    for _ in range(100):
        limit.follow(150.0, 0.01)
    assert not limit.reached
    for _ in range(2000):
        limit.follow(150.0, 0.01)
    assert limit.reached


@pytest.mark.parametrize("text", ["", "x", "12.5", "1e9"])
def test_a_text_no_kernel_takes_leaves_the_limit(tmp_path: Path, text: str) -> None:
    (tmp_path / "limit").write_text(text)
    (tmp_path / "window").write_text("1000000\n")
    limit = Limit("/limit", "/window", limit_w=42.0)
    limit.look(Sysroot(tmp_path))
    assert limit.limit_w == 42.0
    limit.limit_file = "/missing"
    limit.look(Sysroot(tmp_path))
    assert limit.limit_w == 42.0


@given(st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(0.0, 400.0)), max_size=50))
def test_clocks_never_stop_and_never_exceed_the_highest(looks: list[tuple[float, float]]) -> None:
    limiter = Limiter([Limit("/none", "/none", limit_w=100.0)])
    for mean_w, power_w in looks:
        limiter.limits[0].mean_w = mean_w
        limiter.look(Sysroot(Path("/nowhere")), power_w)
        assert 0.1 <= limiter.share <= 1.0
