"""``suspended``: the machine was suspended."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement

MAX_SUSPENDED_S = 0.05
"""The two clocks are read one after the other; a real suspension lasts much longer."""


def suspended(evidence: Evidence) -> Iterator[Judgement]:
    """The clock of the samples stands still while a machine sleeps; counters and supplies do not."""
    if evidence.suspended_s > MAX_SUSPENDED_S:
        yield Verdict.VOID, f"the machine was suspended for {evidence.suspended_s:.1f} s meanwhile"
