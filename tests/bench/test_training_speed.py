"""Whether all engines of a cell are loaded at once, by what a step needs and what there is."""

from __future__ import annotations

import pytest

from bench.peers.ratios import Cell, Measured
from bench.peers.turns import Effort
from bench.training import speed

CELL = Cell(model="fcn5", batch_size=4, threads=1, optimizer="sgd")
EFFORT = Effort(cell_s=1.0, turn_s=0.5, least_rounds=2)


def test_a_step_needs_more_the_larger_its_batch_is():
    def needed(batch_size: int) -> int:
        return speed.step_bytes(Cell(model="fcn5", batch_size=batch_size, threads=1))

    assert needed(8) - needed(4) == needed(12) - needed(8) > 0


@pytest.mark.parametrize(("engines_that_fit", "expected"), [(1, "one"), (2, "one"), (3, "all")])
def test_engines_that_do_not_fit_together_are_loaded_one_at_a_time(monkeypatch, engines_that_fit, expected):
    called = []

    def noting(name):
        def measure(cell, peers, effort):
            called.append((name, cell, peers, effort))
            return Measured(cell=cell, turns_ms={}, least_ms={})

        return measure

    monkeypatch.setattr(speed, "measure_processes", noting("all"))
    monkeypatch.setattr(speed, "measure_one_at_a_time", noting("one"))
    peers = ["torch", "torch-compile"]
    speed.measured_in(CELL, peers, EFFORT, engines_that_fit * speed.step_bytes(CELL))
    assert called == [(expected, CELL, peers, EFFORT)]
