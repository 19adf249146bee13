"""Threads on a simulated board gain what its model says, also where this machine has a single core for all of them."""

from __future__ import annotations

import json
import os

import pytest

from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.physics import PowerModel, inference_s
from powerlab.boards.simulator.start import start_settings
from powerlab.domain.workload import Workload
from powerlab.measure.worker.simulated_work import inference_work

BOARD, MODEL, THREADS = "jetson-agx-xavier", "alexnet", (1, 2, 4)
WORDS = (
    f"{MODEL} --board {BOARD} --modes MAXN --threads {','.join(map(str, THREADS))} --repeats 3 --database none --json"
)
pytestmark = pytest.mark.campaign(minutes=1)

SHORT = "--duration 1 --warm-up 0.2 --idle 0.3"


@pytest.fixture(scope="module")
def throughput(shared_powerlab) -> dict[int, float]:
    """The best of three repeats by threads: too busy a machine only makes a run worse."""
    core = min(os.sched_getaffinity(0))
    done = shared_powerlab(
        "profile", *WORDS.split(), *SHORT.split(), preexec_fn=lambda: os.sched_setaffinity(0, {core})
    )
    assert done.returncode in {0, 1}, done.stderr
    found: dict[int, float] = {}
    for run in json.loads(done.stdout)["runs"]:
        (value,) = [one["value"] for one in run["metrics"] if one["name"] == "throughput_img_per_s"]
        threads = run["point"]["threads"]
        found[threads] = max(value, found.get(threads, 0.0))
    return found


def modelled_img_per_s(threads: int) -> float:
    simulation = layout.simulation_of(BOARD)
    state = start_settings(find_board(BOARD), simulation, None).state(threads)
    work = inference_work(Workload(model=MODEL, batch_size=1))
    return 1 / inference_s(PowerModel.from_document(simulation), state, work)


@pytest.mark.parametrize("threads", THREADS)
def test_the_rate_is_the_models(throughput, threads):
    assert throughput[threads] == pytest.approx(modelled_img_per_s(threads), rel=0.03)


def test_threads_gain_less_than_they_are_many(throughput):
    assert throughput[1] < throughput[2] < 2 * throughput[1]
    assert throughput[2] < throughput[4] < 2 * throughput[2]
    modelled = modelled_img_per_s(4) / modelled_img_per_s(1)
    assert throughput[4] / throughput[1] == pytest.approx(modelled, rel=0.03)
