"""What a simulated board sees of a worker: load while it computes, none while it waits for the next query."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from powerlab.boards.simulator import pacing
from powerlab.boards.simulator.load import busy_threads
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.scenarios import loops
from powerlab.measure.worker.main import Job
from powerlab.measure.worker.messages import Load, Measure, Show, WarmUp
from powerlab.sysroot import Sysroot

FAKES = Path(__file__).parent.parent / "measure" / "fakes"


def job(board: Sysroot, threads: int = 4, **changes: object) -> Job:
    workload = Workload(**{"model": "good", "batch_size": 4, **changes})
    return Job(
        Load(backend_module="numpy_backend", workload=workload, threads=threads, sysroot=str(board.base), seed=1)
    )


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FAKES))


@pytest.fixture
def waiting(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Busy threads of the board at the beginning and at the end of every wait."""
    seen: list[int] = []
    honest = loops._wait_until

    def watched(time_ns: int) -> None:
        seen.append(busy_threads(board))
        honest(time_ns)
        seen.append(busy_threads(board))

    monkeypatch.setattr(loops, "_wait_until", watched)
    return seen


@pytest.fixture
def computing(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Busy threads of the board in the middle of every inference."""
    seen: list[int] = []

    def sleep(seconds: float) -> None:
        seen.append(busy_threads(board))
        time.sleep(seconds)

    monkeypatch.setattr(pacing, "time", SimpleNamespace(sleep=sleep, monotonic_ns=time.monotonic_ns))
    return seen


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_all_threads_are_busy_in_a_query_and_none_while_the_queue_is_empty(
    board: Sysroot, waiting: list[int], computing: list[int], slices: int
) -> None:
    worker = job(board, scenario=Scenario.SERVER, latency_bound_ms=100.0, slices=slices)
    measured = worker.measure(
        Measure(duration_s=0.3, min_inferences=5, margin_s=0.01, queries_per_s=40.0, arrival_seed=(1,))
    )
    worker.close()
    assert len(measured.start_ns) // 8 >= 5
    assert set(computing) == {4}
    assert len(waiting) >= 10
    assert set(waiting) == {0}


@pytest.mark.parametrize("window", [WarmUp(duration_s=0.1), Measure(duration_s=0.1, min_inferences=20, margin_s=0.02)])
def test_the_load_stays_between_queries_that_follow_on_each_other(board: Sysroot, window: WarmUp | Measure) -> None:
    """What this machine does between two of them, however slow it is, is no rest of the board."""
    worker = job(board)
    between: list[int] = []
    answer = worker.answer

    def watched() -> None:
        answer()
        between.append(busy_threads(board))

    worker.answer = watched  # type: ignore[method-assign]
    worker.carry_out(window)
    after = busy_threads(board)
    worker.close()
    assert len(between) >= 2
    assert (set(between), after) == ({4}, 0)


def test_a_query_of_eight_images_is_as_many_inferences_as_its_batches(board: Sysroot, computing: list[int]) -> None:
    for batch_size, expected in ((1, 8), (2, 4), (4, 2), (8, 1)):
        worker = job(board, scenario=Scenario.MULTI_STREAM, batch_size=batch_size)
        computing.clear()
        worker.answer()
        assert len(computing) == expected
        worker.close()


def test_the_engine_computes_once_however_many_queries_there_are(board: Sysroot) -> None:
    worker = job(board, batch_size=1)
    for _ in range(2):
        worker.warm_up(WarmUp(duration_s=0.1))
    timed = worker.measure(Measure(duration_s=0.1, min_inferences=3, margin_s=0.0))
    assert len(timed.start_ns) // 8 >= 3
    assert worker._slices._first.backend._runs == 1
    worker.show(Show())
    assert worker._slices._first.backend._runs == 2
    worker.close()


def test_slices_are_no_more_threads_than_the_board_was_asked_for(board: Sysroot) -> None:
    worker = job(board, threads=8, batch_size=8, slices=8)
    assert len(worker._slices._others) == 7
    worker.answer()
    worker.close()
    assert busy_threads(board) == 0
