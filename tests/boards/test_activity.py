"""How a worker makes a simulated board's cores switch more or less, and what the board draws then."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import layout, pacer
from powerlab.boards.simulator.load import Load, busy_threads, load_now
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.pacing import Pacer
from powerlab.boards.simulator.physics import BoardState, Core, PowerModel, Work, components_w, inference_s
from powerlab.engine.codegen.work import StepWork
from powerlab.measure.layers.activity import activities
from powerlab.sysroot import Sysroot

MODEL = PowerModel.from_document(layout.simulation_of("jetson-agx-xavier"))
TICK_NS = 10_000_000


def state(activity: float = 1.0, busy: int = 4) -> BoardState:
    core = Core(busy_khz=2265600, idle_khz=1190400)
    return BoardState(cores=(core,) * 8, busy_threads=busy, gpu_share=(1.0,), emc_hz=2133000000, activity=activity)


def cpu_w(one: BoardState) -> float:
    return components_w(MODEL, one)["cpu0"]


@given(st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_power_is_linear_in_what_the_cores_switch(one: float, other: float) -> None:
    """So the mean power of layers is that of their mean, which makes the whole's truth the sum of theirs."""
    middle_w = cpu_w(state((one + other) / 2))
    assert (cpu_w(state(one)) + cpu_w(state(other))) / 2 == pytest.approx(middle_w)


@given(st.floats(0.1, 3.0))
def test_idle_cores_do_not_care(activity: float) -> None:
    assert components_w(MODEL, state(activity, busy=0)) == components_w(MODEL, state(1.0, busy=0))


@given(st.floats(0.1, 3.0))
def test_it_changes_power_and_no_speed(activity: float) -> None:
    work = Work(1e9, 1e8)
    assert inference_s(MODEL, state(activity), work) == inference_s(MODEL, state(), work)
    others = {
        name: watts for name, watts in components_w(MODEL, state(activity)).items() if name not in {"cpu0", "board"}
    }
    assert others == {name: components_w(MODEL, state())[name] for name in others}


def test_a_worker_that_says_nothing_of_it_switches_as_ever(board: Sysroot) -> None:
    with Load(board) as load:
        load.publish(4)
        assert load_now(board)[:2] == (4, 1.0)


def test_what_was_published_last_counts(board: Sysroot) -> None:
    with Load(board) as load:
        for threads, activity in ((2, 1.25), (100_000, 0.5), (1, 1.3333), (8, 1.0)):
            load.publish(threads, activity)
            assert load_now(board)[:2] == (threads, pytest.approx(activity))
            assert busy_threads(board) == threads


def test_without_load_nothing_switches_more(board: Sysroot) -> None:
    assert load_now(board)[:2] == (0, 1.0)
    with Load(board) as load:
        load.publish(0, 1.4)
        assert load_now(board)[:2] == (0, 1.0)


def test_workers_count_by_their_threads(board: Sysroot) -> None:
    with Load(board) as load:
        load.publish(3, 1.4)
        ours = board.path(f"{layout.LOAD_DIRECTORY}/{os.getpid()}").read_text()
        parent = os.getppid()
        started = _started(parent)
        board.path(f"{layout.LOAD_DIRECTORY}/{parent}").write_text(f"1 {started} 0.6\n")
        assert load_now(board)[:2] == (4, pytest.approx((3 * 1.4 + 0.6) / 4))
        assert ours.split()[0] == "3"


def _started(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[19]


def test_a_file_of_two_words_is_read_as_ever(board: Sysroot) -> None:
    board.path(f"{layout.LOAD_DIRECTORY}/{os.getpid()}").write_text(f"5 {_started(os.getpid())}\n")
    assert load_now(board)[:2] == (5, 1.0)


def test_a_paced_worker_says_it_while_it_repeats_a_layer_and_only_then(board: Sysroot) -> None:
    one = pacer(board, 2)
    try:
        with one.at(1.3), one.inference():
            assert load_now(board)[:2] == (2, pytest.approx(1.3))
        with one.inference():
            assert load_now(board)[:2] == (2, 1.0)
    finally:
        one.close()


def test_the_load_stays_between_repetitions_and_goes_after_them(board: Sysroot) -> None:
    one = pacer(board, 2)
    try:
        with one.at(1.3):
            assert busy_threads(board) == 0
            for _ in range(2):
                with one.inference():
                    pass
                assert load_now(board)[:2] == (2, pytest.approx(1.3))
        assert busy_threads(board) == 0
        with one.inference():
            pass
        assert busy_threads(board) == 0
    finally:
        one.close()


def test_a_layer_that_fails_leaves_nothing_behind(board: Sysroot) -> None:
    one = pacer(board, 2)
    try:
        with pytest.raises(RuntimeError), one.at(1.3):
            raise RuntimeError
        with one.inference():
            assert load_now(board)[1] == 1.0
    finally:
        one.close()


def test_a_real_machine_needs_no_telling() -> None:
    with Pacer(2).at(1.3):
        pass


def test_the_boards_sensors_see_it(board: Sysroot) -> None:
    simulator = Simulator(board)
    drawn = {}
    try:
        with Load(board) as load:
            for number, activity in enumerate((0.7, 1.0, 1.3)):
                load.publish(4, activity)
                drawn[activity] = sum(simulator.tick((number + 1) * TICK_NS).values())
    finally:
        simulator.close()
    assert drawn[0.7] < drawn[1.0] < drawn[1.3]
    assert drawn[1.3] - drawn[1.0] == pytest.approx(drawn[1.0] - drawn[0.7])


def step(flops: int, bytes_moved: int) -> StepWork:
    return StepWork(label="x", operator="", output="", shape=(1,), flops=flops, bytes_moved=bytes_moved)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**7), st.floats(1.0, 1e6)), min_size=1, max_size=20))
def test_a_whole_network_switches_what_networks_switch(steps: list[tuple[int, int, float]]) -> None:
    work = [step(flops, moved) for flops, moved, _ in steps]
    times = np.array([ns for *_, ns in steps])
    found = np.array(activities(work, times))
    assert np.all(found > 0)
    assert (found * times).sum() / times.sum() == pytest.approx(1)


def test_what_multiplies_more_a_byte_switches_more() -> None:
    found = activities([step(0, 100), step(100, 100), step(100_000, 100)], np.ones(3))
    assert found[0] < found[1] < found[2]


def test_a_network_of_one_step_draws_what_it_always_draws() -> None:
    assert activities([step(5, 100)], np.array([3.0])) == pytest.approx((1.0,))
    assert replace(state(), activity=1.0) == state()
