from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.physics import (
    BoardState,
    PowerModel,
    Reading,
    noisy,
    power_w,
    quantised,
    speedup,
)

SIMULATION = layout.simulation_of("jetson-agx-xavier")
MODEL = PowerModel.from_document(SIMULATION)
CLOCKS = SIMULATION["cpu_freqs_khz"]
RAILS = {"GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"}


def board(cores: int = 8, khz: int = 2265600, busy: int = 0, idle_khz: int = 1190400) -> BoardState:
    return BoardState(
        core_khz=(khz,) * cores,
        idle_khz=(min(idle_khz, khz),) * cores,
        busy_threads=busy,
        gpu_hz=1377000000,
        emc_hz=2133000000,
    )


STATES = st.builds(
    board,
    cores=st.integers(1, 8),
    khz=st.sampled_from(CLOCKS),
    busy=st.integers(0, 16),
    idle_khz=st.sampled_from(CLOCKS),
)


def total_w(state: BoardState) -> float:
    return sum(power_w(MODEL, state).values())


def test_the_board_draws_about_what_such_boards_draw() -> None:
    assert 7.0 < total_w(board()) < 10.0, "idle in MAXN"
    assert 22.0 < total_w(board(busy=8)) < 30.0, "eight busy cores in MAXN"
    assert 8.0 < total_w(board(cores=4, khz=1190400, busy=4)) < 15.0, "MODE_15W stays within its budget"


@given(STATES)
def test_every_rail_is_there_and_none_is_negative(state: BoardState) -> None:
    rails = power_w(MODEL, state)
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
        loaded, quiet = (power_w(MODEL, board(cores, khz, threads, khz))["CPU"] for threads in (busy, 0))
        return loaded - quiet

    assert switching_w(high) / switching_w(low) >= high / low * (1.0 - 1e-9)


@given(STATES, st.integers(1, 7))
def test_a_core_that_is_off_line_draws_nothing(state: BoardState, fewer: int) -> None:
    left = max(1, len(state.core_khz) - fewer)
    smaller = replace(state, core_khz=state.core_khz[:left], idle_khz=state.idle_khz[:left])
    if left < len(state.core_khz):
        assert power_w(MODEL, smaller)["CPU"] < power_w(MODEL, state)["CPU"]


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


@given(st.floats(0.0, 60.0), st.sampled_from([1000, 2000, 4000, 5000, 10000]), st.integers(4000, 20000))
def test_a_reading_is_a_whole_number_of_the_chips_steps(drawn_w: float, shunt_uohm: int, supply_mv: int) -> None:
    reading = quantised(drawn_w, supply_mv, shunt_uohm)
    step_ma = 40_000 / shunt_uohm
    assert reading.voltage_mv % 8 == 0
    assert reading.current_ma % step_ma == 0
    half_a_step_w = step_ma * reading.voltage_mv / 2e6
    assert abs(reading.power_mw / 1000 - drawn_w) <= half_a_step_w + 0.001 + 1e-9


def test_the_xaviers_step_is_the_published_one() -> None:
    assert quantised(0.2, SIMULATION["supply_mv"], SIMULATION["shunt_uohm"]) == Reading(voltage_mv=19200, current_ma=10)
    assert Reading(voltage_mv=19200, current_ma=10).power_mw == 192


@pytest.mark.parametrize("true_w", [0.19, 0.77, 2.9, 14.6])
def test_noise_leaves_the_mean_alone_and_carries_it_across_the_steps(true_w: float) -> None:
    noise = random.Random(1)
    count = 20_000
    readings = [
        quantised(noisy(true_w, noise), SIMULATION["supply_mv"], SIMULATION["shunt_uohm"]).power_mw / 1000
        for _ in range(count)
    ]
    assert sum(readings) / count == pytest.approx(true_w, abs=0.02)


def test_a_rail_that_is_off_has_no_noise_that_would_look_like_power() -> None:
    assert noisy(0.0, random.Random(1)) == 0.0


def test_the_noise_is_repeatable() -> None:
    first, second = random.Random(7), random.Random(7)
    assert [noisy(3.0, first) for _ in range(10)] == [noisy(3.0, second) for _ in range(10)]
