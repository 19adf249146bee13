"""How a convolution gets its algorithm and its cut: a chooser is asked once for each.

The algorithm never depends on the number of threads, so that results do not: algorithms round differently. How the
work is cut may, because no cut changes the order in which a sum is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.algorithms.algorithm import Algorithm
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.machine import Machine

Chooser = Callable[[ConvShape], Choice]


def by_cost(machine: Machine) -> Chooser:
    """Return a chooser that takes what the algorithms expect to be the fastest."""
    alone = replace(machine, threads=1)

    @cache
    def choose(shape: ConvShape) -> Choice:
        best, *others = applicable(shape, machine)
        if others:
            best = min((best, *others), key=lambda algorithm: expected_cycles(algorithm, shape, alone))
        return cheapest(best, shape, machine)

    return choose


def always(algorithm: str, machine: Machine) -> Chooser:
    """Return a chooser that takes one algorithm wherever it can be used, and else the fastest; for comparisons."""
    otherwise = by_cost(machine)

    def choose(shape: ConvShape) -> Choice:
        wanted = ALGORITHMS[algorithm]
        return cheapest(wanted, shape, machine) if wanted.applies(shape, machine.tier) else otherwise(shape)

    return choose


def applicable(shape: ConvShape, machine: Machine) -> list[Algorithm]:
    """Return the algorithms that can compute ``shape``; there always is one."""
    return [algorithm for algorithm in ALGORITHMS.values() if algorithm.applies(shape, machine.tier)]


def cheapest(algorithm: Algorithm, shape: ConvShape, machine: Machine) -> Choice:
    """Return the candidate that ``algorithm`` expects to be the fastest."""
    return min(algorithm.candidates(shape, machine), key=lambda choice: algorithm.cycles(shape, choice, machine))


def expected_cycles(algorithm: Algorithm, shape: ConvShape, machine: Machine) -> float:
    """Return the cycles of an algorithm's best candidate."""
    return min(algorithm.cycles(shape, choice, machine) for choice in algorithm.candidates(shape, machine))
