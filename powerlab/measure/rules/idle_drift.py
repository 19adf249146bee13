"""``idle-drift``: the idle baselines before and after a run differ."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, unshared_half_width_w

MAX_IDLE_DRIFT = 0.10


def idle_drift(evidence: Evidence) -> Iterator[Judgement]:
    """A board whose idle power moved was in two states, and nobody saw in which of them the run was.

    One sensor read both, so its gain error moves them alike; what is within the rest of their errors is no difference.
    """
    before, after = evidence.idle_before, evidence.idle_after
    if before is None or after is None:
        return
    apart_w, mean_w = abs(after.power_w - before.power_w), (after.power_w + before.power_w) / 2
    unsure_w = unshared_half_width_w(before) + unshared_half_width_w(after)
    if apart_w > MAX_IDLE_DRIFT * mean_w and apart_w > unsure_w:
        yield (
            Verdict.FLAGGED,
            f"idle power was {before.power_w:.3g} W before the run and {after.power_w:.3g} W after it, "
            f"{apart_w / mean_w:.0%} apart (limit {MAX_IDLE_DRIFT:.0%})",
        )
