"""``in-step``: a sensor that looks part of the time saw some parts of the queries more often than others."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.power import CARD_SOURCES
from powerlab.domain.run import Verdict
from powerlab.domain.workload import Processor
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement

LEAST_MISSED, MOST_MISSED = 0.05, 0.25
"""Up to the second the budget has a term for it. Beyond, what was never seen may draw more than anything seen."""


def in_step(evidence: Evidence) -> Iterator[Judgement]:
    """The power of what a sensor never looked at is unknown. What a card draws that waits, no query decides."""
    on_cores = evidence.workload is not None and evidence.workload.processor is Processor.CPU
    for key, share in evidence.missed_shares.items():
        waits = on_cores and key.partition(":")[0] in CARD_SOURCES
        if share > LEAST_MISSED and not waits:
            yield (
                Verdict.VOID if share > MOST_MISSED else Verdict.FLAGGED,
                f"queries repeat in step with {key}, which looks only part of the time, so {share:.0%} of a query was "
                "never seen; measure another batch size, or the server scenario, whose queries come at random",
            )
