"""``background-load``: other processes used the machine."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def background_load(evidence: Evidence) -> Iterator[Judgement]:
    """Other processes took time and power."""
    for cores, when in (
        (evidence.background_cores, "during the run"),
        (evidence.idle_background_cores, "while idle power was measured, which makes it too high"),
    ):
        limit = evidence.background_limit_cores
        if cores is not None and cores > limit:
            yield Verdict.FLAGGED, f"other processes kept {cores:.2g} cores busy {when} (limit {limit:.2g})"
