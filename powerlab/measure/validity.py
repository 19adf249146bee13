"""Judge whether a run's figures may be used: all rules are applied, and the worst finding is the verdict.

:data:`powerlab.domain.validity.ENERGY_RULES` names the rules that judge power and energy alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from powerlab.domain.run import Finding, Verdict
from powerlab.domain.validity import ENERGY_RULES
from powerlab.measure.energy.clocks import clock_parts
from powerlab.measure.energy.total import TotalEnergy, total_energy
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.registry import RULES
from powerlab.measure.rules.window_too_short import MIN_UPDATES_FLAGGED, MIN_UPDATES_VOID, window_too_short

__all__ = [
    "MIN_UPDATES_FLAGGED",
    "MIN_UPDATES_VOID",
    "RULES",
    "Evidence",
    "judge",
    "usable_energy",
    "window_too_short",
]


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Ask every rule."""
    return tuple(
        Finding(rule=rule.__name__.replace("_", "-"), verdict=verdict, detail=detail)
        for rule in RULES
        for verdict, detail in rule(evidence)
    )


def usable_energy(evidence: Evidence, findings: Iterable[Finding]) -> TotalEnergy | None:
    """Return the board's energy in the window; None where a finding says that its power may not be used."""
    void = any(finding.rule in ENERGY_RULES and finding.verdict is Verdict.VOID for finding in findings)
    if evidence.total is None or void:
        return None
    energy = total_energy(evidence.total, evidence.traces, evidence.window_ns)
    clocks = clock_parts(evidence.total_traces(), evidence.window_ns, evidence.clock_errors_s)
    return replace(energy, parts=(*energy.parts, *clocks))
