"""Choosing by what was measured here; shapes that were not are left to the cost model."""

from __future__ import annotations

from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.choosing import Chooser, by_cost, cheapest
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.machine import Machine
from powerlab.engine.tuning.kept import Tuned, Tunings


def by_tuning(tunings: Tunings, machine: Machine) -> Chooser:
    """Return a chooser that takes what was found fastest.

    Where a shape was tuned for other numbers of threads only, its algorithm is taken and the model cuts the work:
    results are the same bits then, however many threads there are. What is no candidate any more is not taken.
    """
    known, expected = tunings.by_shape(), by_cost(machine)

    def choose(shape: ConvShape) -> Choice:
        tuned = known.get(shape)
        return (tuned and _usable(tuned, machine)) or expected(shape)

    return choose


def _usable(tuned: Tuned, machine: Machine) -> Choice | None:
    algorithm = ALGORITHMS.get(tuned.algorithm)
    if algorithm is None or not algorithm.applies(tuned.shape, machine.tier):
        return None
    choice = tuned.cuts.get(machine.threads)
    if choice is not None and choice in algorithm.candidates(tuned.shape, machine):
        return choice
    return cheapest(algorithm, tuned.shape, machine)
