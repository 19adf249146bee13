"""Compare an engine's outputs with the built-in engine's for the same seeded inputs.

What an engine would gain by computing something else is no speed. So before a sweep measures anything, every engine and
precision shows its outputs once for every model and batch size.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powerlab.backends.packages import PACKAGES
from powerlab.domain.accuracy import OutputAccuracy
from powerlab.domain.errors import PowerlabError, TooLargeError
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor, Workload
from powerlab.measure.output_accuracy import Outputs, accuracy_of
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.process import Worker, WorkerError

REFERENCE_ENGINE, REFERENCE_PRECISION, REFERENCE_PROCESSOR = "builtin", "fp32", Processor.CPU

TOLERANCES = {"fp32": 1e-3, "fp16": 2e-2, "bf16": 5e-2}
"""Largest difference by precision, as a share of the largest output: float32 differs by the order of its sums alone,
the others by their 11 and 8 bits of mantissa, layer after layer."""

COARSEST = 1.0
"""The same for any other precision: a difference as large as the largest output is another function. How much less is
too much, its rule decides (``inaccurate``)."""

IMAGES = 64
"""How many images a low precision is compared on, if that takes the reference no longer than :data:`LONGEST_S` and its
outputs no more memory than :data:`MOST_BYTES`; one batch at least."""
LONGEST_S = 10.0
MOST_BYTES = 64e6


class OutputsDifferError(PowerlabError):
    """An engine's outputs are too far from the built-in engine's.

    Attributes:
        engine: which one's.
    """

    def __init__(self, words: str, engine: str) -> None:
        super().__init__(words)
        self.engine = engine


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """What came of the comparison.

    Attributes:
        differences: by engine, model, batch size and precision (as a workload with nothing else set), the largest
            difference from the reference as a share of the largest output.
        accuracies: the same of a low precision: how exact its outputs are.
        unchecked: in sentences, what could not be compared.
    """

    differences: Mapping[Workload, float] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    accuracies: Mapping[Workload, OutputAccuracy] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """What was found, in sentences; empty where there was nothing to compare."""
        found: tuple[str, ...] = ()
        if self.differences:
            engines = sorted({workload.engine for workload in self.differences})
            largest = max(self.differences.values())
            within = f"to within {largest:.1e} of the largest" if largest else "bit for bit"
            found = (f"The outputs of {', '.join(engines)} are those of the built-in engine in fp32, {within}.",)
        return " ".join((*found, *self.unchecked))

    def of(self, point: Point) -> float | None:
        """Return the difference that was found for a point; None where nothing was compared."""
        return self.differences.get(compared(point))

    def accuracy_of(self, point: Point) -> OutputAccuracy | None:
        """Return how exact a point's outputs are; None in fp32, and where nothing was compared."""
        return self.accuracies.get(compared(point))


def compared(point: Point) -> Workload:
    """Return what of a point decides its outputs."""
    load = point.workload
    return Workload(
        model=load.model,
        batch_size=load.batch_size,
        precision=load.precision,
        engine=load.engine,
        processor=load.processor,
    )


def check_outputs(plan: SweepPlan, meter: Meter, model_files: Mapping[str, str] | None = None) -> OutputCheck:
    """Compare every engine of a plan with the built-in one, each in a worker of its own; nothing where models train.

    A worker that crashes here, or finds too little memory, says nothing yet: its runs will be recorded as failed.

    Raises:
        PowerlabError: an engine's outputs differ by more than its precision explains.
    """
    differences: dict[Workload, float] = {}
    accuracies: dict[Workload, OutputAccuracy] = {}
    unchecked: dict[str, None] = {}
    references: dict[Workload, Sequence[Outputs]] = {}
    first = {compared(point): point for point in reversed(plan.points()) if not point.workload.trains}
    low = {(one.model, one.batch_size) for one in first if one.precision != REFERENCE_PRECISION}
    for workload, point in first.items():
        wanted = replace(
            workload, engine=REFERENCE_ENGINE, precision=REFERENCE_PRECISION, processor=REFERENCE_PROCESSOR
        )
        if workload == wanted or workload.engine not in PACKAGES:
            continue
        try:
            if wanted not in references:
                count = IMAGES if (workload.model, workload.batch_size) in low else 1
                references[wanted] = _reference(
                    replace(point, workload=wanted), meter, range(plan.seed, plan.seed + count), model_files
                )
            reference = references[wanted]
            if not reference:
                unchecked[
                    f"No outputs for {workload.model} are compared, because the built-in engine cannot run it."
                ] = None
                continue
            exact = workload.precision == REFERENCE_PRECISION
            seeds = range(plan.seed, plan.seed + (1 if exact else len(reference)))
            found = _outputs(replace(point, workload=workload), meter, seeds, model_files)
            differences[workload] = _checked(workload, found[0], reference[0])
            if not exact:
                accuracies[workload] = accuracy_of(reference, found, workload.batch_size, plan.least_sqnr_db)
        except (WorkerError, TooLargeError):
            continue
    return OutputCheck(differences, tuple(unchecked), accuracies)


def largest_difference(found: Outputs, expected: Outputs) -> float:
    """Return the largest difference of any number as a share of the largest number its output should hold.

    Infinite where outputs are missing, have another shape, or are no numbers.
    """
    if found.keys() != expected.keys() or any(found[name].shape != value.shape for name, value in expected.items()):
        return float("inf")
    worst = 0.0
    for name, value in expected.items():
        apart = np.abs(found[name].astype(np.float64) - value)
        largest = float(np.abs(value).max(initial=0.0))
        share = float(apart.max(initial=0.0)) / (largest or 1.0)
        worst = max(worst, share if np.isfinite(share) else float("inf"))
    return worst


def _checked(workload: Workload, found: Outputs, reference: Outputs) -> float:
    difference = largest_difference(found, reference)
    tolerance = TOLERANCES.get(workload.precision, COARSEST)
    if difference > tolerance:
        raise OutputsDifferError(
            f"the outputs of {workload.engine} for {workload.model} (batch {workload.batch_size}, "
            f"{workload.precision}) differ "
            f"from the built-in engine's by {difference:.2g} of the largest output, where {tolerance:g} is allowed; "
            "leave out this engine or this model, because they do not compute the same function.",
            workload.engine,
        )
    return difference


def _reference(
    point: Point, meter: Meter, seeds: Sequence[int], model_files: Mapping[str, str] | None
) -> Sequence[Outputs]:
    """Return the built-in engine's outputs, of fewer seeds where they take too long; none where it cannot run it."""
    try:
        return _outputs(point, meter, seeds, model_files, LONGEST_S)
    except PowerlabError:
        return ()


def _outputs(
    point: Point,
    meter: Meter,
    seeds: Sequence[int],
    model_files: Mapping[str, str] | None = None,
    longest_s: float = math.inf,
) -> list[Outputs]:
    """Return the outputs for the inputs of each seed, until :data:`IMAGES` are reached, or the time or memory is up."""
    plain = replace(point, spin_us=None)
    found: list[Outputs] = []
    with Worker(worker_cores(point)) as worker:
        worker.load(load_request(plain, meter, seeds[0], model_files))
        end = time.monotonic() + longest_s
        for seed in seeds:
            (outputs,) = worker.show(seed)
            found.append(outputs)
            images = len(found) * point.workload.batch_size
            size = len(found) * sum(value.nbytes for value in outputs.values())
            if images >= IMAGES or time.monotonic() > end or (size > MOST_BYTES and math.isfinite(longest_s)):
                break
    return found
