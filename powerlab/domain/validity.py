"""What the findings of a validity rule mean for a run's figures."""

from __future__ import annotations

from collections.abc import Iterable

from powerlab.domain.run import Finding, Verdict

ENERGY_RULES = frozenset(
    {
        "implausible-power",
        "in-step",
        "missing-power",
        "negative-power",
        "power-gap",
        "stale-sensor",
        "suspended",
        "uncovered-processor",
        "window-too-short",
    }
)
"""Rules that judge power and energy alone: a run that only they made void keeps its latency and throughput."""

_SEVERITY = (Verdict.VALID, Verdict.FLAGGED, Verdict.VOID, Verdict.FAILED)


def worst_verdict(findings: Iterable[Finding]) -> Verdict:
    """Return the worst verdict of the findings; valid where there are none."""
    return max((finding.verdict for finding in findings), key=_SEVERITY.index, default=Verdict.VALID)
