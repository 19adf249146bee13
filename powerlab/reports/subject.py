"""What a report is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from powerlab.analysis.best import Best, best_points
from powerlab.analysis.dimensions import varying
from powerlab.analysis.searched import in_contest, runs_in_contest
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import short
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import SweepPlan


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A sweep.

    Attributes:
        sweep_id: its identifier.
        device_name: what people call the device.
        simulated: whether that is a simulated board.
        plan: what was asked for.
        runs: in the plan's order.
        device: what is known of the device; None where nobody said.
    """

    sweep_id: str
    device_name: str
    simulated: bool
    plan: SweepPlan
    runs: tuple[Run, ...]
    device: Device | None = None

    @cached_property
    def summaries(self) -> tuple[PointSummary, ...]:
        """Its points, put together once for every part of the report."""
        return summarise(self.runs)

    @cached_property
    def best(self) -> tuple[Best, ...]:
        """Its best points; of a search those that it did not give up are compared."""
        return best_points(in_contest(self.summaries, self.plan), runs_in_contest(self.runs, self.plan))

    @property
    def models(self) -> str:
        """Its models in words."""
        return ", ".join(short(model) for model in self.plan.models)

    @property
    def date(self) -> str:
        """The day on which its first run began, UTC, ISO 8601."""
        return min(run.started_at for run in self.runs)[:10]

    @property
    def short_id(self) -> str:
        """The beginning of its identifier."""
        return self.sweep_id[:8]

    def named(self, summary: PointSummary) -> str:
        """Return a point in the words in which the points differ."""
        return varying(one.point for one in self.summaries)(summary.point)


def check_worth_a_report(subject: Subject, name: str = "") -> None:
    """Raise PowerlabError where a sweep, or what else the runs are called, has no run whose figures may be used."""
    name = name or f"the sweep {subject.sweep_id}"
    if any(summary.metrics for summary in subject.summaries):
        return
    if not subject.runs:
        raise PowerlabError(f"{name} has no runs yet; report it when some have finished.")
    verdicts = ", ".join(
        f"{count} {verdict}" for verdict in Verdict if (count := sum(run.verdict is verdict for run in subject.runs))
    )
    raise PowerlabError(
        f"{name} has no usable runs ({verdicts}), so there is nothing to report; "
        f"`powerlab runs list --sweep {subject.short_id}` shows why."
    )
