"""``sampling-load``: sampling slowed down the workload."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement

MAX_CORE_SHARE = 0.05


def sampling_load(evidence: Evidence) -> Iterator[Judgement]:
    """Sampling takes processor time and power, which a run's figures hold and its load did not ask for."""
    share = evidence.sampling_core_share
    if share is not None and share > MAX_CORE_SHARE:
        yield (
            Verdict.FLAGGED,
            f"the sampling took {share:.1%} of a core (limit {MAX_CORE_SHARE:.0%})",
        )
