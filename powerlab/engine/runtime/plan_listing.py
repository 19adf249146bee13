"""What a plan looks like, step by step: what was chosen, what it is expected to take, and what it took."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shapes
from powerlab.engine.codegen.work import StepWork
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.ir.graph import Graph
from powerlab.engine.program.choice import Choice
from powerlab.engine.session import Session
from powerlab.engine.target.ceilings import Ceilings
from powerlab.engine.target.machine import Machine

_FLOPS_PER_MULTIPLY_ADD = 2
_LEAST_RUNS, _MOST_RUNS, _ENOUGH_NS = 3, 50, 2_000_000_000


class ListedStep(Struct, frozen=True, kw_only=True):
    """One step of a plan.

    Attributes:
        work: its node, operator, result and work.
        kernel: the kernel's full name.
        choice: what was chosen; None where there was no choice.
        expected_ns: what the cost model says; for what is no convolution, what the roofs allow.
        roof_ns: the least that the roofs of the processor allow, every operand crossing memory once.
        measured_ns: median over runs of the whole model; None where it was not run.
    """

    work: StepWork
    kernel: str
    choice: Choice | None
    expected_ns: float
    roof_ns: float
    measured_ns: float | None

    @property
    def ns(self) -> float:
        """Return the measured time where there is one, else the expected one."""
        return self.expected_ns if self.measured_ns is None else self.measured_ns

    @property
    def gflops(self) -> float:
        """Return 10^9 operations a second, counted as a direct convolution needs them."""
        return self.work.flops / self.ns if self.ns else 0.0

    @property
    def roof_share(self) -> float:
        """Return which part of what the roofs allow is reached; algorithms that multiply less may pass 1."""
        return self.roof_ns / self.ns if self.ns else 0.0


def list_steps(
    session: Session,
    graph: Graph,
    machine: Machine,
    roofs: Ceilings,
    measured_ns: Sequence[float] | None = None,
) -> tuple[ListedStep, ...]:
    """Return the steps of a session's plan.

    Args:
        session: holds the plan.
        graph: the optimised graph it was made from.
        machine: what it was made for.
        roofs: of this processor, with as many threads.
        measured_ns: what each step took; None: not measured.
    """
    shapes = conv_shapes(graph)
    times = [None] * len(session.work) if measured_ns is None else measured_ns
    return tuple(
        ListedStep(
            work=work,
            kernel=kernel,
            choice=choice,
            expected_ns=_expected_ns(shapes.get(work.output), choice, machine, roofs) or _roof_ns(work, roofs),
            roof_ns=_roof_ns(work, roofs),
            measured_ns=taken,
        )
        for work, choice, (kernel, _), taken in zip(session.work, session.choices, session.steps(), times, strict=True)
    )


def measure_steps(session: Session) -> list[float]:
    """Return the median time of each step in nanoseconds, over runs of the whole model on random inputs."""
    inputs = synthetic_inputs(session.inputs, 0, session.dtypes)
    session.run(inputs)
    until_ns = time.monotonic_ns() + _ENOUGH_NS
    runs: list[list[int]] = []
    while len(runs) < _LEAST_RUNS or (len(runs) < _MOST_RUNS and time.monotonic_ns() < until_ns):
        runs.append([ns for _, _, ns in session.profile(inputs)])
    return [float(value) for value in np.median(np.array(runs), axis=0)]


def _expected_ns(shape: ConvShape | None, choice: Choice | None, machine: Machine, roofs: Ceilings) -> float | None:
    if shape is None or choice is None:
        return None
    a_cycle = _FLOPS_PER_MULTIPLY_ADD * machine.tier.vector_width * machine.multiply_adds_per_cycle
    clock_ghz = roofs.peak_gflops / machine.threads / a_cycle
    return ALGORITHMS[choice.algorithm].cycles(shape, choice, machine) / clock_ghz


def _roof_ns(work: StepWork, roofs: Ceilings) -> float:
    return max(work.flops / roofs.peak_gflops, work.bytes_moved / roofs.memory_gb_per_s)
