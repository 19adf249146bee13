"""``mode-drift``: the power mode did not hold."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def mode_drift(evidence: Evidence) -> Iterator[Judgement]:
    """Somebody changed the power mode meanwhile: the figures belong to no mode."""
    if evidence.drift is not None:
        yield Verdict.VOID, evidence.drift
