from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import clusters_of
from powerlab.boards.simulator.physics import (
    BoardState,
    Core,
    PowerModel,
    components_w,
    rails_w,
    slowdown,
    speedup,
)

SIMULATION = layout.simulation_of("jetson-agx-xavier")
MODEL = PowerModel.from_document(SIMULATION)
CLOCKS = clusters_of(SIMULATION)[0].freqs_khz
RAILS = {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"}


def board(cores: int = 8, khz: int = 2265600, busy: int = 0, idle_khz: int = 1190400) -> BoardState:
    return BoardState(
        cores=(Core(busy_khz=khz, idle_khz=min(idle_khz, khz)),) * cores,
        busy_threads=busy,
        gpu_share=(1.0,),
        emc_hz=2133000000,
    )


STATES = st.builds(
    board,
    cores=st.integers(1, 8),
    khz=st.sampled_from(CLOCKS),
    busy=st.integers(0, 16),
    idle_khz=st.sampled_from(CLOCKS),
)


def power_w(state: BoardState) -> dict[str, float]:
    return rails_w(SIMULATION["rails"], components_w(MODEL, state))


def total_w(state: BoardState) -> float:
    return sum(power_w(state).values())


def test_the_board_draws_about_what_such_boards_draw() -> None:
    assert 7.0 < total_w(board()) < 10.0, "idle in MAXN"
    assert 22.0 < total_w(board(busy=8)) < 30.0, "eight busy cores in MAXN"
    assert 8.0 < total_w(board(cores=4, khz=1190400, busy=4)) < 15.0, "MODE_15W stays within its budget"


@given(STATES)
def test_every_rail_is_there_and_none_is_negative(state: BoardState) -> None:
    rails = power_w(state)
    assert set(rails) == RAILS
    assert all(watts >= 0.0 for watts in rails.values())
    assert rails["CV"] == 0.0, "no workload of ours uses the vision accelerators"


@given(STATES)
def test_one_more_busy_core_draws_more(state: BoardState) -> None:
    more = replace(state, busy_threads=state.busy_threads + 1)
    if more.busy_cores > state.busy_cores:
        assert total_w(more) > total_w(state)
    else:
        assert total_w(more) == total_w(state), "more threads than cores change nothing"


@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.sampled_from(CLOCKS), min_size=2, max_size=2, unique=True))
def test_a_higher_clock_draws_more_than_in_proportion(cores: int, busy: int, clocks: list[int]) -> None:
    low, high = sorted(clocks)
    busy = min(cores, busy)

    def switching_w(khz: int) -> float:
        loaded, quiet = (power_w(board(cores, khz, threads, khz))["CPU"] for threads in (busy, 0))
        return loaded - quiet

    assert switching_w(high) / switching_w(low) >= high / low * (1.0 - 1e-9)


@given(STATES, st.integers(1, 7))
def test_a_core_that_is_off_line_draws_nothing(state: BoardState, fewer: int) -> None:
    left = max(1, len(state.cores) - fewer)
    smaller = replace(state, cores=state.cores[:left])
    if left < len(state.cores):
        assert power_w(smaller)["CPU"] < power_w(state)["CPU"]


@given(st.integers(1, 64), st.integers(1, 64))
def test_more_threads_are_faster_but_never_as_much_as_they_are_many(threads: int, cores: int) -> None:
    gain = speedup(MODEL, threads, cores)
    assert 1.0 <= gain <= min(threads, cores) + 1e-12
    assert gain == speedup(MODEL, cores, threads)
    assert gain <= 1.0 / (1.0 - MODEL.parallel_fraction), "Amdahl's limit"
    assert speedup(MODEL, threads + 1, cores) >= gain


@pytest.mark.parametrize(("threads", "cores"), [(0, 4), (4, 0), (-1, 4)])
def test_no_thread_or_no_core_is_a_mistake(threads: int, cores: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        speedup(MODEL, threads, cores)


def test_a_quota_thins_the_switching_and_stretches_the_work_alike() -> None:
    free = board(busy=4)
    held = replace(free, quota_cores=1.0)
    assert held.busy_share == 0.25
    assert slowdown(MODEL, held) == pytest.approx(4 * slowdown(MODEL, free))
    idle_w, held_w, free_w = (power_w(state)["CPU"] for state in (replace(free, busy_threads=0), held, free))
    assert (held_w - idle_w) == pytest.approx((free_w - idle_w) / 4)


def test_a_quota_above_the_busy_cores_changes_nothing() -> None:
    free = board(busy=2)
    assert power_w(replace(free, quota_cores=3.0)) == power_w(free)
    assert slowdown(MODEL, replace(free, quota_cores=3.0)) == slowdown(MODEL, free)


def test_no_slowdown_without_work() -> None:
    with pytest.raises(ValueError, match="no core is busy"):
        slowdown(MODEL, board(busy=0))


@given(STATES)
def test_no_state_is_faster_than_full_clocks(state: BoardState) -> None:
    if state.busy_cores:
        assert slowdown(MODEL, state) >= 1.0 - 1e-12


def test_slow_cores_of_a_mixed_cpu_count_for_less() -> None:
    slow = Core(busy_khz=2265600, idle_khz=1190400, speed=0.5, switching=0.3)
    state = replace(board(cores=2, busy=2), cores=(*board(cores=1).cores, slow))
    assert slowdown(replace(MODEL, memory_bound=0.0), state) == pytest.approx(1 / 0.75)
    assert power_w(state)["CPU"] < power_w(board(cores=2, busy=2))["CPU"]


def test_memory_that_is_slower_slows_the_share_that_waits_for_it() -> None:
    model = replace(MODEL, memory_bound=0.2)
    assert slowdown(model, board(busy=1)) == pytest.approx(1.0)
    assert slowdown(model, replace(board(busy=1), emc_hz=2133000000 // 2)) == pytest.approx(1.2)


def test_a_core_kept_out_of_its_deepest_idle_state_draws_more_when_idle() -> None:
    deep, shallow = (
        replace(board(), cores=(Core(busy_khz=2265600, idle_khz=2265600, shallow=s),)) for s in (False, True)
    )
    assert power_w(shallow)["CPU"] > power_w(deep)["CPU"]


def test_packages_are_components_of_their_own_and_a_rail_is_their_weighted_sum() -> None:
    cores = tuple(Core(busy_khz=2265600, idle_khz=1190400, package=package) for package in (0, 0, 1, 1))
    components = components_w(MODEL, replace(board(busy=2), cores=cores))
    assert components["cpu0"] > components["cpu1"] > 0
    rails = rails_w({"both": {"cpu0": 1.0, "cpu1": 0.5}, "none": {"cpu7": 1.0}}, components)
    assert rails == {"both": components["cpu0"] + 0.5 * components["cpu1"], "none": 0.0}
