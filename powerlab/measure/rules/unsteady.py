"""``unsteady``: the warm-up ended before the workload was steady."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def unsteady(evidence: Evidence) -> Iterator[Judgement]:
    """What still changes when the timed part begins is a mixture of two states."""
    for sentence in evidence.unsteady:
        yield Verdict.FLAGGED, sentence
