"""``throttled``: the device throttled."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def throttled(evidence: Evidence) -> Iterator[Judgement]:
    """A device that was slowed down is not in the state its power mode stands for."""
    for sentence in evidence.throttled:
        yield Verdict.FLAGGED, sentence
    for sentence in evidence.idle_throttled:
        yield Verdict.FLAGGED, f"while idle power was measured: {sentence}"
