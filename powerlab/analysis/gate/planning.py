"""What a gate against a baseline takes: the scatter between its sweeps, and the sweeps of either side that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import stdev

from powerlab.analysis.gate.gate import gathered, samples_of
from powerlab.analysis.gate.needed import sweeps_needed
from powerlab.analysis.gate.occasions import sweep_ids
from powerlab.analysis.gate.samples import Sample
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One metric at one point.

    Attributes:
        point: as the baseline ran it.
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        provenance: what the figures are.
        deviation: relative standard deviation between sweeps.
        sweep_count: sweeps that show it.
        sweeps_needed: sweeps that each side takes; None where there are too many to count.
    """

    point: Point
    metric: str
    provenance: Provenance
    deviation: float
    sweep_count: int
    sweeps_needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """What a gate takes.

    Attributes:
        max_loss: the loss that may be, as a part.
        found_loss: the loss that is found with 95 %.
        baseline_sweeps: identifiers of the sweeps that the scatter was seen in.
        run_count: runs of one such sweep.
        rows: every metric at every point.
    """

    max_loss: float
    found_loss: float
    baseline_sweeps: tuple[str, ...]
    run_count: int
    rows: tuple[PlanRow, ...]

    @property
    def sweeps_needed(self) -> int | None:
        """Sweeps that each side takes; None where there are too many to count."""
        needed = [row.sweeps_needed for row in self.rows]
        return None if None in needed else max(count for count in needed if count is not None)


def plan(baseline: Sequence[Sequence[Run]], names: Sequence[str], *, max_loss: float, found_loss: float) -> GatePlan:
    """Plan a gate; arguments as of :func:`powerlab.analysis.gate.gate.judge`.

    Raises:
        PowerlabError: no metric was measured in two sweeps, so that their scatter is unknown.
    """
    rows = [
        _row(runs[0][0].point, name, samples)
        for runs in gathered(baseline).values()
        for name in names
        if len(samples := samples_of(runs, name)) > 1 and {one.provenance for one in samples} != {Provenance.ESTIMATED}
    ]
    if not rows:
        raise PowerlabError(
            "a plan takes a baseline of at least two sweeps with valid runs of one point, which show how much sweeps "
            "differ; measure the baseline again."
        )
    return GatePlan(
        max_loss=max_loss,
        found_loss=found_loss,
        baseline_sweeps=sweep_ids(baseline),
        run_count=max(map(len, baseline)),
        rows=tuple(
            replace(
                row,
                sweeps_needed=sweeps_needed(
                    row.metric,
                    deviation=row.deviation,
                    degrees=row.sweep_count - 1,
                    max_loss=max_loss,
                    found_loss=found_loss,
                    test_count=len(rows),
                ),
            )
            for row in rows
        ),
    )


def _row(point: Point, name: str, samples: Sequence[Sample]) -> PlanRow:
    return PlanRow(
        point=point,
        metric=name,
        provenance=samples[0].provenance,
        deviation=stdev(one.logarithm for one in samples),
        sweep_count=len(samples),
    )
