"""Engines in turn: who follows whom, what counts, and what becomes of an engine that fails."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bench.peers import turns
from bench.peers.ratios import OURS, Cell
from bench.peers.turns import (
    Effort,
    EngineError,
    EngineInTurn,
    EngineProcess,
    OnePlace,
    balanced_orders,
    measure,
    measure_one_at_a_time,
    measure_processes,
)

ROOT = Path(__file__).parents[2]
CELL = Cell(model="net", batch_size=1, threads=2)
EFFORT = Effort(cell_s=10.0, turn_s=0.1, least_rounds=3)


class Machine:
    """A clock that engines move by computing, the order in which they did, and which are loaded and were."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.turns: list[str] = []
        self.counts: set[tuple[int, int]] = set()
        self.alive: list[str] = []
        self.loaded: list[str] = []

    def clock(self) -> float:
        return self.now_s


class Fake:
    """An engine that takes so long, gives one number, and may fail at loading or in a turn."""

    def __init__(self, machine: Machine, name: str, latency_s: float, answer: float = 1.0, fails_at: int = -1) -> None:
        self.machine, self.name, self.latency_s, self.answer, self.fails_at = machine, name, latency_s, answer, fails_at
        self.turns = 0

    def outputs(self) -> dict[str, np.ndarray]:
        if self.fails_at == 0:
            raise EngineError(f"{self.name} has no such operator")
        return {"out": np.array([self.answer], np.float32)}

    def turn(self, warm: int, counted: int) -> list[float]:
        self.turns += 1
        if self.turns == self.fails_at:
            raise EngineError("died (exit code -9)")
        self.machine.turns.append(self.name)
        self.machine.counts.add((warm, counted))
        self.machine.now_s += (warm + counted) * self.latency_s
        return [self.latency_s] * counted


def fakes(machine: Machine, **latencies_s: float) -> dict[str, Fake]:
    return {name: Fake(machine, name, latency_s) for name, latency_s in latencies_s.items()}


@pytest.mark.parametrize("count", range(1, 8))
def test_in_every_order_everybody_has_one_turn(count):
    for order in balanced_orders(count):
        assert sorted(order) == list(range(count))


@pytest.mark.parametrize("count", range(2, 8))
def test_everybody_follows_everybody_else_equally_often(count):
    follows = Counter(pair for order in balanced_orders(count) for pair in itertools.pairwise(order))
    assert set(follows) == set(itertools.permutations(range(count), 2))
    assert len(set(follows.values())) == 1


@pytest.mark.parametrize("count", range(2, 8))
def test_everybody_is_first_equally_often(count):
    first = Counter(order[0] for order in balanced_orders(count))
    assert len(first) == count
    assert len(set(first.values())) == 1


def test_the_ratio_is_that_of_the_latencies():
    machine = Machine()
    one = measure(CELL, fakes(machine, builtin=0.010, a=0.015, b=0.030), EFFORT, machine.clock)
    assert one.ratios["a"].median == pytest.approx(1.5)
    assert one.ratios["b"].median == pytest.approx(3.0)
    assert one.least_ms[OURS] == pytest.approx(10.0)
    assert one.absent == {}
    assert one.cell == CELL


def test_everybody_has_the_same_number_of_turns_and_of_inferences_in_them():
    machine = Machine()
    engines = fakes(machine, builtin=0.010, a=0.015, b=0.200)
    measure(CELL, engines, EFFORT, machine.clock)
    assert len({engine.turns for engine in engines.values()}) == 1
    assert machine.counts == {(0, 1), (3, 10)}, "a trial, then as many as the fastest does in a tenth of a second"


def test_a_slow_model_runs_once_a_turn_and_warms_up_once():
    machine = Machine()
    measure(CELL, fakes(machine, builtin=0.15, a=0.2), EFFORT, machine.clock)
    assert machine.counts == {(0, 1), (1, 1)}


def test_a_very_slow_model_warms_up_by_itself():
    machine = Machine()
    measure(CELL, fakes(machine, builtin=2.0, a=3.0), EFFORT, machine.clock)
    assert machine.counts == {(0, 1)}


def test_a_fast_model_does_not_run_without_end():
    machine = Machine()
    measure(CELL, fakes(machine, builtin=1e-6, a=1e-6), Effort(cell_s=1e-3, turn_s=1.0, least_rounds=3), machine.clock)
    assert max(counted for _, counted in machine.counts) <= 50


def test_a_cell_ends_when_its_seconds_are_over():
    machine = Machine()
    one = measure(CELL, fakes(machine, builtin=0.010, a=0.010), EFFORT, machine.clock)
    round_s, trial_s = 2 * 13 * 0.010, 2 * 0.010
    assert machine.now_s == pytest.approx(EFFORT.cell_s + trial_s, abs=2 * round_s)
    assert one.rounds > 30


def test_a_slow_model_still_has_its_rounds():
    machine = Machine()
    assert measure(CELL, fakes(machine, builtin=60.0, a=60.0), EFFORT, machine.clock).rounds == EFFORT.least_rounds


def test_nobody_always_follows_the_same_neighbour():
    machine = Machine()
    measure(CELL, fakes(machine, builtin=0.01, a=0.01, b=0.01, c=0.01), EFFORT, machine.clock)
    rounds = [machine.turns[place : place + 4] for place in range(4, 4 + 16, 4)]
    assert len({tuple(order) for order in rounds}) == 4
    assert {before for order in rounds for before, after in itertools.pairwise(order) if after == OURS} == {
        "a",
        "b",
        "c",
    }


def test_a_peer_that_cannot_run_the_model_says_so_and_the_others_are_compared():
    machine = Machine()
    engines = fakes(machine, builtin=0.01, a=0.02)
    engines["odd"] = Fake(machine, "odd", 0.001, fails_at=0)
    one = measure(CELL, engines, EFFORT, machine.clock)
    assert one.absent == {"odd": "odd has no such operator"}
    assert set(one.ratios) == {"a"}
    assert "odd" not in machine.turns


def test_a_peer_that_computes_something_else_is_not_compared():
    machine = Machine()
    engines = fakes(machine, builtin=0.01, a=0.02)
    engines["odd"] = Fake(machine, "odd", 0.001, answer=1.01)
    one = measure(CELL, engines, EFFORT, machine.clock)
    assert "differ from ours by 0.01" in one.absent["odd"]
    assert set(one.ratios) == {"a"}


def test_differences_are_shares_of_our_largest_output():
    machine = Machine()
    engines = fakes(machine, builtin=0.01)
    engines["a"] = Fake(machine, "a", 0.01, answer=1.0005)
    assert measure(CELL, engines, EFFORT, machine.clock).differences["a"] == pytest.approx(0.0005, rel=1e-3)


@pytest.mark.parametrize("fails_at", [1, 2, 5])
def test_a_peer_that_dies_in_a_turn_leaves_the_others_comparable(fails_at):
    machine = Machine()
    engines = fakes(machine, builtin=0.01, a=0.02)
    engines["odd"] = Fake(machine, "odd", 0.01, fails_at=fails_at)
    one = measure(CELL, engines, EFFORT, machine.clock)
    assert one.absent == {"odd": "died (exit code -9)"}
    assert one.ratios["a"].median == pytest.approx(2.0)
    assert one.rounds > 5


@pytest.mark.parametrize("fails_at", [0, 1, 4])
def test_without_the_built_in_engine_nothing_is_compared(fails_at):
    machine = Machine()
    engines = {OURS: Fake(machine, OURS, 0.01, fails_at=fails_at), **fakes(machine, a=0.02)}
    one = measure(CELL, engines, EFFORT, machine.clock)
    assert OURS in one.absent
    assert one.best is None
    assert machine.now_s < EFFORT.cell_s


def test_without_a_peer_nothing_is_measured():
    machine = Machine()
    one = measure(CELL, fakes(machine, builtin=0.01), EFFORT, machine.clock)
    assert (one.best, one.rounds, machine.turns) == (None, 0, [])


class Process(Fake):
    """An engine in a process, which begins and ends."""

    pid = os.getpid()

    def outputs(self) -> dict[str, np.ndarray]:
        assert not self.machine.alive, "another process is there"
        self.machine.alive.append(self.name)
        self.machine.loaded.append(self.name)
        return super().outputs()

    def turn(self, warm: int, counted: int) -> list[float]:
        assert self.machine.alive == [self.name]
        return super().turn(warm, counted)

    def close(self) -> None:
        self.machine.alive.remove(self.name)


def in_one_place(
    machine: Machine, fails: str = "", **latencies_s: float
) -> tuple[OnePlace, Mapping[str, EngineInTurn]]:
    def start(name: str) -> Process:
        return Process(machine, name, latencies_s[name], fails_at=0 if name == fails else -1)

    place = OnePlace(start)
    return place, {name: EngineInTurn(place, name) for name in latencies_s}


ONE_EACH = Effort(cell_s=0.0, turn_s=0.0, least_rounds=3)


def test_in_one_place_one_process_is_alive_and_stays_for_its_next_turn():
    machine = Machine()
    place, engines = in_one_place(machine, builtin=60.0, a=90.0)
    one = measure(CELL, engines, ONE_EACH, machine.clock)
    assert machine.turns == [OURS, "a", "a", OURS, OURS, "a"]
    assert machine.loaded == ["a", OURS, "a", OURS, "a"], (
        "for outputs, of which the last one stays, and every other turn"
    )
    assert machine.counts == {(0, 1)}
    assert one.ratios["a"].median == pytest.approx(1.5)
    place.close()
    assert machine.alive == []


def test_in_one_place_a_peer_that_does_not_load_leaves_its_place_to_the_others():
    machine = Machine()
    place, engines = in_one_place(machine, fails="odd", builtin=60.0, odd=60.0, a=90.0)
    one = measure(CELL, engines, ONE_EACH, machine.clock)
    assert one.absent == {"odd": "odd has no such operator"}
    assert one.rounds == 3
    place.close()
    assert machine.alive == []


SMALL = Cell(model="fcn5", batch_size=2, threads=1)


@pytest.mark.campaign(minutes=0.5)
def test_an_engine_answers_from_a_process_of_its_own():
    engine = EngineProcess(OURS, SMALL)
    try:
        (output,) = engine.outputs().values()
        assert output.shape[0] == 2
        assert np.isfinite(output).all()
        latencies = engine.turn(1, 3)
        assert len(latencies) == 3
        assert min(latencies) > 0
        assert len(engine.turn(0, 1)) == 1
    finally:
        engine.close()


def test_a_model_that_an_engine_refuses_is_a_sentence():
    engine = EngineProcess(OURS, Cell(model="no-such-model", batch_size=1, threads=1))
    try:
        with pytest.raises(EngineError, match="no-such-model"):
            engine.outputs()
    finally:
        engine.close()


@pytest.mark.campaign(minutes=0.5)
def test_an_engine_that_is_killed_is_a_sentence():
    engine = EngineProcess(OURS, SMALL)
    engine.outputs()
    engine._process.kill()
    with pytest.raises(EngineError, match=r"died \(exit code -9\)"):
        engine.turn(1, 1)
    engine.close()


@pytest.mark.campaign(minutes=0.5)
def test_a_peer_that_is_no_engine_here_takes_no_part_and_disturbs_nobody():
    one = measure_processes(SMALL, ["onnxruntime-tensorrt"], Effort(cell_s=0.1, turn_s=0.001, least_rounds=2))
    assert set(one.absent) == {"onnxruntime-tensorrt"}
    assert one.best is None
    assert one.others_cores >= 0


@pytest.mark.campaign(minutes=0.5)
def test_one_at_a_time_says_so():
    one = measure_one_at_a_time(SMALL, ["onnxruntime"], Effort(cell_s=0.1, turn_s=0.001, least_rounds=2))
    assert one.one_at_a_time
    assert one.rounds == 2
    assert set(one.ratios) == {"onnxruntime"}


def test_an_engine_that_takes_too_long_to_load_takes_no_part():
    engine = EngineProcess(OURS, SMALL, answer_s=0.0)
    try:
        with pytest.raises(EngineError, match="gave no answer in 0 s"):
            engine.outputs()
    finally:
        engine.close()


def test_a_turn_ends_only_when_no_thread_spins_any_more():
    """In a process of its own, because the other threads of a test runner count too.

    Up to ten times: a thread that a busy machine does not let run looks asleep.
    """
    code = """
        import threading, time
        from bench.peers.turns import _wait_until_asleep
        until = time.monotonic() + 0.3
        def spin():
            while time.monotonic() < until:
                pass
        threading.Thread(target=spin).start()
        _wait_until_asleep()
        assert time.monotonic() >= until
        """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    said = []
    for _ in range(10):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode == 0:
            return
        said.append(done.stderr)
    pytest.fail("\n".join(said))


def test_threads_that_never_sleep_leave_their_engine_out(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(turns, "_ASLEEP_LIMIT_S", 0.02)
    monkeypatch.setattr(turns.time, "process_time", lambda: float(next(ticks)))
    with pytest.raises(EngineError, match="still spin"):
        turns._wait_until_asleep()
