"""What a worker waits for on a simulated board: an inference as a whole, a step of training part by part."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from powerlab.boards.simulator import NO_WORK, Pacer, Work
from powerlab.domain.workload import Recompute, Workload, WorkloadKind
from powerlab.measure.worker.simulated_query import SimulatedQuery
from small_network import write_small_network


class Board(Pacer):
    """A board that waits for nothing, and keeps what it was told."""

    computes = False

    def __init__(self) -> None:
        super().__init__(host_threads=1)
        self.told: list[tuple[Work, float | None]] = []

    def seconds(self, work: Work) -> float:
        return work.flops / 1e9 + work.bytes_moved / 1e9

    @contextmanager
    def inference(self, work: Work = NO_WORK) -> Iterator[None]:
        self.told.append((work, None))
        yield

    def parts(self, works: Sequence[tuple[Work, float]]) -> list[int]:
        self.told += works
        return [round(1e9 * self.seconds(work)) for work, _ in works]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_small_network(tmp_path_factory.mktemp("query") / "small.onnx"))


def test_an_inference_has_no_parts(model: str, tmp_path: Path) -> None:
    for name in (model, str(tmp_path / "none.onnx")):
        board = Board()
        assert SimulatedQuery(Workload(model=name, batch_size=4), board).wait() == {}
        assert len(board.told) == 1


def test_a_step_draws_what_a_whole_does_on_the_mean_and_its_update_less(model: str) -> None:
    board = Board()
    workload = Workload(model=model, batch_size=4, kind=WorkloadKind.TRAIN, optimizer="adam")
    took_ns = SimulatedQuery(workload, board).wait()
    assert list(took_ns) == ["forward", "backward", "update"]
    assert took_ns["backward"] == pytest.approx(2 * took_ns["forward"], rel=1e-3)
    again_ns = SimulatedQuery(replace(workload, recompute=Recompute.YES), Board()).wait()
    assert again_ns["backward"] == pytest.approx(3 * took_ns["forward"], rel=1e-3)
    switching = dict(zip(took_ns, (activity for _, activity in board.told), strict=True))
    assert switching["update"] < switching["forward"] == pytest.approx(switching["backward"])
    mean = sum(switching[name] * ns for name, ns in took_ns.items()) / sum(took_ns.values())
    assert mean == pytest.approx(1.0, rel=1e-3)


def test_with_others_it_waits_for_gradients_between_the_passes_and_the_update(model: str) -> None:
    told: list[int] = []

    def add_up(arrays: Sequence[NDArray[np.float32]]) -> None:
        told.append(len(board.told))
        time.sleep(0.02)
        assert all(one.size for one in arrays)

    board = Board()
    workload = Workload(model=model, batch_size=4, kind=WorkloadKind.TRAIN, optimizer="sgd", nodes=2)
    took_ns = SimulatedQuery(workload, board).wait(add_up)
    assert list(took_ns) == ["forward", "backward", "reduce", "update"]
    assert took_ns["reduce"] >= 20_000_000
    assert (told, len(board.told)) == ([2], 3)
