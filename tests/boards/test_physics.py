from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS, find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import clusters_of, core_numbers
from powerlab.boards.simulator.physics import (
    CALL_S,
    BoardState,
    Core,
    PowerModel,
    Work,
    components_w,
    inference_s,
    rails_w,
)
from powerlab.boards.simulator.start import start_settings

SIMULATION = layout.simulation_of("jetson-agx-xavier")
MODEL = PowerModel.from_document(SIMULATION)
CLOCKS = clusters_of(SIMULATION)[0].freqs_khz
WORK = Work(flops=1e9, bytes_moved=1e8)
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


def test_an_inference_by_hand() -> None:
    """1 GFLOP at 12 a clock and 2.2656 GHz are 36.782 ms, 100 MB at 80 GB/s are 1.25 ms; 4 % is serial."""
    assert inference_s(MODEL, board(busy=1), WORK) == pytest.approx(CALL_S + 0.036782 + 0.00125, rel=1e-4)
    four_s = CALL_S + 0.036782 * (0.04 + 0.96 / 4) + 0.00125
    assert inference_s(MODEL, board(busy=4), WORK) == pytest.approx(four_s, rel=1e-4)


@given(st.integers(1, 64), st.integers(1, 64), st.floats(0, 1e12), st.floats(0, 1e10))
def test_more_threads_are_faster_but_never_as_much_as_they_are_many(
    threads: int, cores: int, flops: float, bytes_moved: float
) -> None:
    work = Work(flops, bytes_moved)
    took_s = inference_s(MODEL, board(cores, busy=threads), work)
    gain = inference_s(MODEL, board(cores, busy=1), work) / took_s
    assert 1.0 - 1e-12 <= gain <= min(threads, cores) + 1e-12
    assert gain <= 1.0 / (1.0 - MODEL.parallel_fraction) + 1e-12, "Amdahl's limit"
    assert inference_s(MODEL, board(cores, busy=threads + 1), work) <= took_s * (1 + 1e-12)


@given(st.floats(0, 1e12), st.floats(0, 1e10), st.integers(1, 100), STATES)
def test_the_parts_of_an_inference_take_as_long_as_the_whole(
    flops: float, bytes_moved: float, parts: int, state: BoardState
) -> None:
    if state.busy_cores:
        part = Work(flops, bytes_moved) * (1 / parts)
        whole_s = inference_s(MODEL, state, Work(flops, bytes_moved))
        assert parts * inference_s(MODEL, state, part) == pytest.approx(whole_s)


@pytest.mark.parametrize("name", [name for name, one in BOARDS.items() if one.simulatable])
@pytest.mark.parametrize("work", [WORK, Work(1e6, 1e3), Work(1e8, 1e9)], ids=["usual", "tiny", "memory"])
def test_every_board_gains_from_every_core_less_than_the_core(name: str, work: Work) -> None:
    simulation = layout.simulation_of(name)
    model = PowerModel.from_document(simulation)
    settings = start_settings(find_board(name), simulation, None)
    most = len(core_numbers(simulation))
    rates = [1 / inference_s(model, settings.state(threads), work) for threads in range(1, most + 1)]
    assert all(more > fewer for fewer, more in pairwise(rates))
    assert all(rate < threads * rates[0] for threads, rate in enumerate(rates[1:], start=2))


def test_a_quota_thins_the_switching_and_stretches_the_work_alike() -> None:
    free = board(busy=4)
    held = replace(free, quota_cores=1.0)
    assert held.busy_share == 0.25
    assert inference_s(MODEL, held, WORK) == pytest.approx(4 * inference_s(MODEL, free, WORK))
    idle_w, held_w, free_w = (power_w(state)["CPU"] for state in (replace(free, busy_threads=0), held, free))
    assert (held_w - idle_w) == pytest.approx((free_w - idle_w) / 4)


def test_a_quota_above_the_busy_cores_changes_nothing() -> None:
    free = board(busy=2)
    assert power_w(replace(free, quota_cores=3.0)) == power_w(free)
    assert inference_s(MODEL, replace(free, quota_cores=3.0), WORK) == inference_s(MODEL, free, WORK)


def test_nothing_is_computed_without_a_busy_core() -> None:
    with pytest.raises(ValueError, match="no core is busy"):
        inference_s(MODEL, board(busy=0), WORK)


@given(STATES)
def test_no_state_is_faster_than_full_clocks(state: BoardState) -> None:
    if state.busy_cores:
        fastest_s = inference_s(MODEL, board(len(state.cores), busy=state.busy_threads), WORK)
        assert inference_s(MODEL, state, WORK) >= fastest_s * (1.0 - 1e-12)


def test_slow_cores_of_a_mixed_cpu_count_for_less() -> None:
    slow = Core(busy_khz=2265600, idle_khz=1190400, speed=0.5, switching=0.3)
    state = replace(board(cores=2, busy=2), cores=(*board(cores=1).cores, slow))
    arithmetic = Work(flops=1e9, bytes_moved=0.0, calls=0.0)
    ratio = inference_s(MODEL, state, arithmetic) / inference_s(MODEL, board(cores=1, busy=1), arithmetic)
    assert ratio == pytest.approx(0.04 + 0.96 / 1.5)
    assert power_w(state)["CPU"] < power_w(board(cores=2, busy=2))["CPU"]


def test_memory_that_is_slower_slows_the_share_that_waits_for_it() -> None:
    half = replace(board(busy=1), emc_hz=2133000000 // 2)
    added_s = inference_s(MODEL, half, WORK) - inference_s(MODEL, board(busy=1), WORK)
    assert added_s == pytest.approx(0.00125, rel=1e-6), "100 MB at 80 GB/s take twice as long"


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
