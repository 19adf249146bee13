"""Processes that learn together do what one does with the joined batch."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess, run
from threading import Barrier

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.training import TrainingSession
from powerlab.engine.training.launch import run_together
from requires import require_program
from training.together_program import STEPS, batch, network

PROGRAM = Path(__file__).with_name("together_program.py")


class Threads:
    """A group of threads of this process."""

    size = 2

    def __init__(self, shared: dict[int, list[np.ndarray]], barrier: Barrier, rank: int) -> None:
        self._shared, self._barrier, self._rank = shared, barrier, rank

    def add_up(self, arrays: list[np.ndarray]) -> None:
        self._shared[self._rank] = [array.copy() for array in arrays]
        self._barrier.wait(60)
        for array, *parts in zip(arrays, self._shared[0], self._shared[1], strict=True):
            array[:] = parts[0] + parts[1]
        self._barrier.wait(60)

    def begin(self, arrays: list[np.ndarray]) -> None:
        if arrays:
            self.add_up(arrays)

    def finish(self) -> None:
        """Nothing was left to do."""


def in_threads(act, graphs: tuple[Graph, Graph]) -> list:
    """Return what each of two threads makes of its session."""
    shared: dict[int, list[np.ndarray]] = {}
    barrier = Barrier(2)

    def one(rank: int):
        group = Threads(shared, barrier, rank)
        return act(TrainingSession(graphs[rank], optimizer="adam", threads=1, group=group), rank)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(2)))


def alone() -> tuple[list[float], dict[str, np.ndarray]]:
    """Return the losses and weights of one process with the joined batch."""
    session = TrainingSession(network(8), optimizer="adam", threads=1)
    losses = [session.step(*batch(step)) for step in range(STEPS)]
    return losses, session.weights()


def learn(session: TrainingSession, rank: int) -> tuple[list[float], dict[str, np.ndarray]]:
    own = slice(4 * rank, 4 * rank + 4)
    losses = [session.step(*(array[own] for array in batch(step))) for step in range(STEPS)]
    return losses, session.weights()


def check(found: list[tuple[list[float], dict[str, np.ndarray]]]) -> None:
    losses, weights = alone()
    for loss, weight in found:
        assert loss == pytest.approx(losses, rel=1e-5)
        for name, value in weights.items():
            np.testing.assert_allclose(weight[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
            np.testing.assert_array_equal(weight[name], found[0][1][name])


def test_two_learn_what_one_does():
    check(in_threads(learn, (network(4), network(4))))


def test_gradients_go_in_buckets_as_soon_as_they_are_there(monkeypatch):
    monkeypatch.setattr("powerlab.engine.training.stretches.BUCKET_FLOATS", 60)
    sent: list[int] = []

    def begin(self: Threads, arrays: list[np.ndarray]) -> None:
        if arrays:
            self.add_up(arrays)
            sent.append(sum(array.size for array in arrays))

    monkeypatch.setattr(Threads, "begin", begin)
    check(in_threads(learn, (network(4), network(4))))
    assert sorted(set(sent)) == [3 * 2 * 9 + 3, 27 * 4]  # of the convolution, and of the linear layer
    assert len(sent) == 2 * 2 * STEPS


def test_a_loss_that_is_not_finite_stops_all():
    def stop(session: TrainingSession, rank: int) -> str:
        x, labels = (array[4 * rank : 4 * rank + 4] for array in batch(0))
        with pytest.raises(PowerlabError) as stopped:
            session.step(np.full_like(x, np.nan) if rank else x, labels)
        assert session.steps_done == 0
        return str(stopped.value)

    first, second = in_threads(stop, (network(4), network(4)))
    assert "it is finite in this process, and in another process it is not" in first
    assert "the numbers of 'x' were not all finite" in second


def test_a_batch_that_one_refuses_stops_no_process_for_ever():
    def go_on(session: TrainingSession, rank: int) -> tuple[str, list[float], dict[str, np.ndarray]]:
        x, labels = (array[4 * rank : 4 * rank + 4] for array in batch(0))
        with pytest.raises(PowerlabError) as refused:
            session.step(x, labels + 1000 * rank)
        return str(refused.value), *learn(session, rank)

    (first, *one), (second, *other) = in_threads(go_on, (network(4), network(4)))
    assert first.startswith("step 1 was made by no process, because another process was given a batch")
    assert second.startswith("the label 1")
    check([tuple(one), tuple(other)])  # as if that batch had never been


def test_other_weights_are_refused():
    other = network(4)
    other = other.rewritten(other.nodes, constants={"b": other.constants["b"] + np.float32(1)})
    with pytest.raises(PowerlabError, match="the processes do not train the same"):
        in_threads(learn, (network(4), other))


def launched(folder: Path, *arguments: str) -> CompletedProcess[str]:
    launch = [sys.executable, "-m", "powerlab.engine.training.launch", "--processes", "2"]
    options = ["--mpirun-options=--allow-run-as-root --oversubscribe", str(PROGRAM), str(folder), *arguments]
    return run([*launch, *options], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.campaign(minutes=1)
def test_two_processes_by_mpi(tmp_path):
    require_program("mpirun", "openmpi-bin")
    done = launched(tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    learnt = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    check(
        [
            (one["losses"], {name: np.array(values, np.float32) for name, values in one["weights"].items()})
            for one in learnt
        ]
    )


@pytest.mark.campaign(minutes=1)
def test_a_process_that_dies_is_named_in_a_sentence(tmp_path):
    require_program("mpirun", "openmpi-bin")
    died = launched(tmp_path, "dies")
    assert died.returncode == 2
    assert re.fullmatch(
        r"powerlab: process 1 of 2 on \S+ was ended by signal 9 \(Killed\), so all were; look whether it ran out of "
        r"memory there, and start the training again\.\n",
        died.stderr,
    )
    assert launched(tmp_path).returncode == 0  # the next training is not touched by that


def test_what_mpirun_says_becomes_a_sentence(tmp_path, monkeypatch):
    said = "ValueError: the file is empty.\nThe first to do so was:\n  Process name: [[7,1],3]\n  Exit code:    1\n"
    fake = tmp_path / "mpirun"
    fake.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}END\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    sentence = "process 3 of 4 failed with exit status 1: ValueError: the file is empty; mend that and start them again"
    with pytest.raises(PowerlabError, match=sentence):
        run_together(["program.py"], 4)
    several = said.replace("The first", "PowerlabError: step 1 was made by no process: another process\nThe first")
    fake.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{several}END\nexit 1\n")
    with pytest.raises(PowerlabError, match="one of 4 processes failed with exit status 1: ValueError: the file is em"):
        run_together(["program.py"], 4)
    fake.write_text("#!/bin/sh\necho mpirun has detected an attempt to run as root. >&2\nexit 1\n")
    with pytest.raises(PowerlabError, match="not start as root; start it as another user, or, in a container, set O"):
        run_together(["program.py"], 2)
    fake.write_text(f"#!/bin/sh\necho {'no slots ' * 50} >&2\nexit 1\n")
    with pytest.raises(PowerlabError, match=r"with exit status 1: no slots no .* slots \.\.\.$"):
        run_together(["program.py"], 2)
    with pytest.raises(PowerlabError, match="1 process or more, not 0"):
        run_together(["program.py"], 0)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PowerlabError, match="no mpirun here; on Debian: apt install openmpi-bin"):
        run_together(["program.py"], 2)
