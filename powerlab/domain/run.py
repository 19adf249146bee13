"""A run: one measured repeat of a point."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric
from powerlab.domain.sweep import Point


class Verdict(StrEnum):
    """Whether a run's figures may be used."""

    VALID = "valid"
    FLAGGED = "flagged"
    VOID = "void"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One validity rule that had something to say, with its figure in ``detail``."""

    rule: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured repeat of a point.

    Attributes:
        id: a UUID given by the device that measured it, so that uploads can be repeated.
        sweep_id: the sweep it belongs to.
        point: what was run.
        repeat: 0-based number of the repeat.
        started_at: UTC, ISO 8601.
        window_ns: start and end of the timed part on CLOCK_MONOTONIC; (0, 0) for a failed run.
        inference_count: inferences in the timed part.
        verdict: the worst of ``findings``.
        findings: what the validity rules said.
        metrics: the figures; without power the power metrics are left out, never 0.
        total: the formula of the board's power; None where no rail could be read.
    """

    id: str
    sweep_id: str
    point: Point
    repeat: int
    started_at: str
    window_ns: tuple[int, int]
    inference_count: int
    verdict: Verdict
    findings: tuple[Finding, ...]
    metrics: tuple[Metric, ...]
    total: TotalFormula | None

    def metric(self, name: str) -> Metric | None:
        """Return the metric of that name, or None where the run has none."""
        return next((metric for metric in self.metrics if metric.name == name), None)
