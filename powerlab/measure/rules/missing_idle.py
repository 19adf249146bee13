"""``missing-idle``: the requested idle baseline is missing."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def missing_idle(evidence: Evidence) -> Iterator[Judgement]:
    """Without idle power nobody knows what the load alone takes; one of the two baselines will do."""
    if evidence.total is None or evidence.power_failure is not None or evidence.idle_s <= 0:
        return
    if evidence.idle_before is None and evidence.idle_after is None:
        yield (
            Verdict.FLAGGED,
            f"no idle baseline of {evidence.idle_s:g} s could be used, so nothing is known of the power above idle",
        )
