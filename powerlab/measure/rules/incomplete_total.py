"""``incomplete-total``: rails of the total cannot be read, so every power figure is too low."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def incomplete_total(evidence: Evidence) -> Iterator[Judgement]:
    """A sum without one of its parts looks like any other sum."""
    if evidence.total is not None and evidence.total.too_low:
        yield Verdict.FLAGGED, f"power is a part of the board's power: {evidence.total.scope}"
