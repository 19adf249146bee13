"""Recompute every figure of a bundle from its raw records, exactly as an audit of a stored run does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.bundles.reading import Bundle
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.measure.audit.audit import audit
from powerlab.measure.audit.compare import Compared, compared_budgets, compared_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A run or a point, recomputed.

    Attributes:
        kind: ``run`` or ``point``.
        id: its identifier.
        compared: everything it says beside the same recomputed; empty where nothing could be.
        reason: why nothing was recomputed; empty where something was.
        failed: whether it is a failed run, which has no figures to recompute.
    """

    kind: str
    id: str
    compared: tuple[Compared, ...]
    reason: str = ""
    failed: bool = False

    @property
    def different(self) -> tuple[Compared, ...]:
        """What is not reproduced."""
        return tuple(one for one in self.compared if not one.equal)

    @property
    def reproduced(self) -> bool:
        """Whether all of it is reproduced."""
        return self.failed or (not self.reason and not self.different)

    @property
    def words(self) -> str:
        """What came of it: ``25 of 25 figures reproduced``."""
        if self.failed:
            return "failed, without figures"
        if self.reason:
            return f"not recomputed: {self.reason}"
        return f"{len(self.compared) - len(self.different)} of {len(self.compared)} figures reproduced"


def verify(bundle: Bundle) -> Iterator[Checked]:
    """Yield every run recomputed from its samples and timings, then every point recomputed from its runs."""
    for run in bundle.runs:
        yield _checked_run(bundle, run)
    stored = {summary.point.id: summary for summary in bundle.points}
    now = {summary.point.id: summary for summary in summarise(bundle.runs)}
    for point_id in dict.fromkeys((*stored, *now)):
        yield _checked_point(point_id, stored.get(point_id), now.get(point_id))


def _checked_run(bundle: Bundle, run: Run) -> Checked:
    if run.verdict is Verdict.FAILED:
        return Checked(kind="run", id=run.id, compared=(), failed=True)
    try:
        found = audit(run, bundle.recorded(run.id))
    except PowerlabError as error:
        return Checked(kind="run", id=run.id, compared=(), reason=str(error).rstrip("."))
    return Checked(kind="run", id=run.id, compared=found.compared)


def _checked_point(point_id: str, stored: PointSummary | None, now: PointSummary | None) -> Checked:
    if stored is None or now is None:
        reason = "the bundle has no summary of it" if stored is None else "the bundle has no runs of it"
        return Checked(kind="point", id=point_id, compared=(), reason=reason)
    compared = (*compared_metrics(stored.metrics, now.metrics), *compared_budgets(stored.budget, now.budget))
    return Checked(kind="point", id=point_id, compared=compared)
