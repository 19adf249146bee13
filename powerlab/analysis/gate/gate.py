"""The gate: does a change lose more than it may against a baseline? Three answers, with the error of each bounded.

Every point and metric that both sides have is judged. *Loss*: that it lost anything is shown, by Holm's procedure at
1 % over all of them together, and its best estimate is above the limit. *Pass*: at every one, that the loss is below
the limit is shown at 5 %; that all must pass makes a correction unnecessary (the intersection-union test; Berger,
Technometrics 24, 1982). Otherwise there is *not enough data*, and the sweeps that would be enough are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from powerlab.analysis.comparison import holm
from powerlab.analysis.gate.loss import Loss, loss
from powerlab.analysis.gate.needed import FOUND_ERROR, PASS_ERROR, sweeps_needed
from powerlab.analysis.gate.occasions import occasions, sweep_ids
from powerlab.analysis.gate.samples import Place, Sample, by_place, sample
from powerlab.analysis.summary import MIN_VALID
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

FOUND_FACTOR = 1.5
"""The smallest loss that a gate is planned to find, over the one that may be, unless another is asked for."""


class GateVerdict(StrEnum):
    """What a gate says."""

    PASS = "pass"  # noqa: S105 - a verdict
    LOSS = "loss"
    OPEN = "not enough data"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One metric at one point.

    Attributes:
        point: as the candidate ran it.
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        provenance: what the figures are.
        baseline: geometric mean of the baseline's sweeps; None where nothing can be compared.
        candidate: that of the candidate's.
        loss: the loss; None where the scatter between sweeps is unknown.
        level: the error level of saying that anything was lost; None without a loss.
        verdict: of this row.
        reason: why there is no verdict, in words; empty where there is one, or where only more sweeps are missing.
        sweeps_needed: sweeps that each side takes for a verdict; None where that is unknown or too many.
    """

    point: Point
    metric: str
    provenance: Provenance | None
    baseline: float | None
    candidate: float | None
    loss: Loss | None = None
    level: float | None = None
    verdict: GateVerdict = GateVerdict.OPEN
    reason: str = ""
    sweeps_needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What a gate found.

    Attributes:
        verdict: of all rows together.
        max_loss: the loss that may be, as a part.
        found_loss: the loss that the sweeps it asks for would find.
        baseline_sweeps: identifiers of the baseline's sweeps.
        candidate_sweeps: identifiers of the candidate's.
        baseline_occasions: observations that the baseline's sweeps count as.
        candidate_occasions: the same of the candidate's.
        rows: every metric at every point that both have.
        missing: points of the baseline that the candidate did not run.
        estimated: metrics left out because a model estimated them: they would only repeat what the times say.
    """

    verdict: GateVerdict
    max_loss: float
    found_loss: float
    baseline_sweeps: tuple[str, ...]
    candidate_sweeps: tuple[str, ...]
    baseline_occasions: int
    candidate_occasions: int
    rows: tuple[GateRow, ...]
    missing: tuple[Point, ...]
    estimated: tuple[str, ...]

    @property
    def sweeps_needed(self) -> int | None:
        """Sweeps that each side takes for a verdict on every row; None where that is unknown for one of them."""
        needed = [row.sweeps_needed for row in self.rows if not row.reason]
        return None if not needed or None in needed else max(count for count in needed if count is not None)


def judge(
    baseline: Sequence[Sequence[Run]],
    candidate: Sequence[Sequence[Run]],
    names: Sequence[str],
    *,
    max_loss: float,
    found_loss: float,
) -> GateReport:
    """Judge a candidate against a baseline.

    Args:
        baseline: the runs of each of its sweeps; all sweeps are of one device.
        candidate: the same of the candidate.
        names: the metrics.
        max_loss: the loss that may be, as a part above 0: 0.02 for 2 %.
        found_loss: the loss that the gate is planned to find, above that.

    Raises:
        PowerlabError: there is nothing to judge.
    """
    sides = occasions(baseline, candidate)
    before, after = map(gathered, sides)
    common = [place for place in after if place in before]
    if not common:
        raise PowerlabError(
            "the sweep and its baseline have no point in common; measure the same model, batch, threads and mode."
        )
    rows, estimated = [], []
    for place in common:
        for name in names:
            row = _row(before[place], after[place], name)
            if row is not None and row.provenance is Provenance.ESTIMATED:
                estimated.append(name)
            elif row is not None:
                rows.append(row)
    if not any(row.candidate is not None for row in rows):
        raise PowerlabError(_nothing(rows, estimated))
    judged = _judged(rows, max_loss, found_loss)
    return GateReport(
        verdict=_overall(row.verdict for row in judged),
        max_loss=max_loss,
        found_loss=found_loss,
        baseline_sweeps=sweep_ids(baseline),
        candidate_sweeps=sweep_ids(candidate),
        baseline_occasions=len(sides[0]),
        candidate_occasions=len(sides[1]),
        rows=judged,
        missing=tuple(runs[0][0].point for place, runs in before.items() if place not in after),
        estimated=tuple(dict.fromkeys(estimated)),
    )


def gathered(sweeps: Iterable[Sequence[Run]]) -> Mapping[Place, list[Sequence[Run]]]:
    """Return, of each point, its runs in every sweep, or on every occasion, that has it."""
    found: dict[Place, list[Sequence[Run]]] = {}
    for sweep in sweeps:
        for place, runs in by_place(sweep).items():
            found.setdefault(place, []).append(runs)
    return found


def _row(before: Sequence[Sequence[Run]], after: Sequence[Sequence[Run]], name: str) -> GateRow | None:
    """Return a metric at a point, not yet judged; None where the baseline does not have it."""
    sides = [samples_of(runs, name) for runs in (before, after)]
    if not sides[0]:
        return None
    point, provenances = after[0][0].point, {one.provenance for side in sides for one in side}
    if len(provenances) > 1:
        words = " and ".join(sorted(provenances))
        return _without(point, name, None, f"{words} figures have no ratio")
    (provenance,) = provenances
    if not sides[1]:
        return _without(point, name, provenance, "the sweep has no valid run of it")
    if min(sum(one.count for one in side) for side in sides) < MIN_VALID:
        return _without(point, name, provenance, f"a claim takes {MIN_VALID} valid runs on each side")
    found = loss(name, *sides)
    values = [_geometric_mean(side) for side in sides]
    return GateRow(point=point, metric=name, provenance=provenance, baseline=values[0], candidate=values[1], loss=found)


def samples_of(sweeps: Sequence[Sequence[Run]], name: str) -> list[Sample]:
    """Return what each sweep says of a metric at a point, by that point's runs in each; some say nothing."""
    return [found for runs in sweeps if (found := sample(runs, name)) is not None]


def _geometric_mean(samples: Sequence[Sample]) -> float:
    return math.exp(math.fsum(one.logarithm for one in samples) / len(samples))


def _without(point: Point, name: str, provenance: Provenance | None, reason: str) -> GateRow:
    return GateRow(point=point, metric=name, provenance=provenance, baseline=None, candidate=None, reason=reason)


def _judged(rows: Sequence[GateRow], max_loss: float, found_loss: float) -> tuple[GateRow, ...]:
    levels = [None if row.loss is None else row.loss.level_above(0.0) for row in rows]
    worse = holm(levels, FOUND_ERROR)
    judged = []
    for row, level, shown in zip(rows, levels, worse, strict=True):
        if row.loss is None:
            judged.append(row)
            continue
        below = row.loss.level_below(max_loss) <= PASS_ERROR
        lost = shown and row.loss.part > max_loss
        verdict = GateVerdict.LOSS if lost else GateVerdict.PASS if below else GateVerdict.OPEN
        needed = sweeps_needed(
            row.metric,
            deviation=row.loss.deviation,
            degrees=row.loss.degrees,
            max_loss=max_loss,
            found_loss=found_loss,
            test_count=len(rows),
        )
        judged.append(replace(row, level=level, verdict=verdict, sweeps_needed=needed))
    return tuple(judged)


def _overall(verdicts: Iterable[GateVerdict]) -> GateVerdict:
    found = set(verdicts)
    if GateVerdict.LOSS in found:
        return GateVerdict.LOSS
    return GateVerdict.OPEN if GateVerdict.OPEN in found else GateVerdict.PASS


def _nothing(rows: Sequence[GateRow], estimated: Sequence[str]) -> str:
    if rows:
        return f"nothing can be judged: {rows[0].reason} ({METRICS[rows[0].metric].title.lower()}); measure it again."
    if estimated:
        return (
            f"{', '.join(dict.fromkeys(estimated))} can only be estimated here, and a gate judges no estimates; "
            "name a metric of time, or measure with a power sensor."
        )
    return "no run of the baseline has such a metric; name another with --metric, or measure the baseline again."
