"""``clock-jump``: the wall clock was set."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement

MAX_JUMP_S = 0.05
"""As for suspensions; a clock that is slewed moves CLOCK_MONOTONIC with it, so that nothing is seen here."""


def clock_jump(evidence: Evidence) -> Iterator[Judgement]:
    """Power and latency have clocks of their own; dates, and what other machines wrote down, no longer fit the run."""
    if abs(evidence.clock_jump_s) > MAX_JUMP_S:
        way = "forward" if evidence.clock_jump_s > 0 else "back"
        yield Verdict.FLAGGED, f"the wall clock was set {way} by {abs(evidence.clock_jump_s):.3g} s meanwhile"
