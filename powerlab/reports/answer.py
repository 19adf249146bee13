"""The answer: which point is best at what, and how sure that is."""

from __future__ import annotations

from powerlab.domain.quantity import METRICS, Metric
from powerlab.reports.blocks import Verdict
from powerlab.reports.subject import Subject
from powerlab.reports.text import figure_text


def verdicts(subject: Subject) -> tuple[Verdict, ...]:
    """Return one line a goal, for each work and provenance that has such figures."""
    return tuple(
        Verdict(
            goal=best.goal,
            figure=_figure(best.metric),
            point=subject.named(best.summary),
            decision=best.decision.value,
            statement=best.statement,
        )
        for best in subject.best
    )


def _figure(metric: Metric) -> str:
    return f"{figure_text(metric).plain} {METRICS[metric.name].unit} ({metric.provenance.value})"
