"""``inaccurate``: a low precision's outputs are further from fp32's than the plan allows."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def inaccurate(evidence: Evidence) -> Iterator[Judgement]:
    """Speed that is bought with wrong outputs is none: such a point is never the winner unseen."""
    accuracy = evidence.output_accuracy
    if accuracy is not None and accuracy.sqnr_db < accuracy.least_sqnr_db:
        yield (
            Verdict.FLAGGED,
            f"the outputs' signal to quantisation noise is {accuracy.sqnr_db:.1f} dB beside fp32, below the "
            f"{accuracy.least_sqnr_db:g} dB that the plan asks for; quantise with more calibration data or keep more "
            "layers in fp32, or allow it with --min-sqnr",
        )
