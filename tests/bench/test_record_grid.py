"""Recording a grid: a run that others disturbed is made again, and a busy machine is waited for, but not for ever."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bench.search import record_grid
from powerlab.domain.sweep import SweepPlan

PLAN = SweepPlan(models=("m",), threads=(1, 2), batch_sizes=(1, 2))


def fake(monkeypatch: pytest.MonkeyPatch, *, idle: float, during: list[float], slower: tuple[float, ...] = ()) -> None:
    """Workers without work; others keep ``idle`` cores busy between runs, and in turn ``during`` ones (then none).

    The machine is so many times ``slower``, in turn before a run and after it; then it has its usual speed.
    """
    timed = SimpleNamespace(start_ns=np.array([0]), end_ns=np.array([2_000_000]))
    worker = SimpleNamespace(pid=1, warm_up=lambda seconds: 0.0, measure=lambda message: timed)
    found, speeds = iter(during), iter(slower)

    def load(*pids: int) -> SimpleNamespace:
        return SimpleNamespace(cores=lambda: next(found, 0.0) if pids else idle)

    monkeypatch.setattr(record_grid, "BackgroundLoad", load)
    monkeypatch.setattr(record_grid, "_loaded", lambda plan, stack: dict.fromkeys(plan.points(), worker))
    monkeypatch.setattr(
        record_grid, "Estimate", lambda: SimpleNamespace(channels=lambda _: [SimpleNamespace(read=float)])
    )
    monkeypatch.setattr(record_grid, "Yardstick", lambda: SimpleNamespace(slower=lambda for_s=0.0: next(speeds, 1.0)))


def test_a_disturbed_run_is_made_again_within_its_repeat(monkeypatch):
    fake(monkeypatch, idle=0.0, during=[0.0, 0.9, 0.0, 0.5])
    rows, again = record_grid.record(PLAN)
    assert (len(rows), again) == (3 * len(PLAN.points()), 2)
    assert [row["repeat"] for row in rows] == [0] * 4 + [1] * 4 + [2] * 4
    for repeat in range(3):
        assert len({(row["batch"], row["threads"]) for row in rows if row["repeat"] == repeat}) == 4


def test_what_is_there_is_not_made_again(monkeypatch):
    fake(monkeypatch, idle=0.0, during=[])
    before, _ = record_grid.record(PLAN, 2)
    kept = before[:6]
    fake(monkeypatch, idle=0.0, during=[])
    rows, _ = record_grid.record(PLAN, 3, have={tuple(row[key] for key in record_grid.KEY) for row in kept})
    assert [row["repeat"] for row in rows] == [1] * 2 + [2] * 4
    assert len({tuple(row[key] for key in record_grid.KEY) for row in (*kept, *rows)}) == 12


def test_a_run_is_made_again_after_which_the_machine_is_slow_and_none_begins_then(monkeypatch):
    fake(monkeypatch, idle=0.0, during=[], slower=(1.0, 1.5, 1.5, 1.5, 1.0, 1.0))
    rows, again = record_grid.record(PLAN)
    assert (len(rows), again) == (3 * len(PLAN.points()), 1)


def test_a_machine_that_stays_busy_is_given_up(monkeypatch):
    fake(monkeypatch, idle=1.0, during=[])
    assert record_grid.record(PLAN, for_s=-1.0) == ([], 0)
