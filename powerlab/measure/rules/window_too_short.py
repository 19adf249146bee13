"""``window-too-short``: the window is shorter than the sensor can resolve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, inside

MIN_UPDATES_VOID, MIN_UPDATES_FLAGGED = 5, 20


def window_too_short(evidence: Evidence) -> Iterator[Judgement]:
    """A sensor that updated only a few times says little about the window."""
    for trace in evidence.total_traces():
        updates = int(np.count_nonzero(inside(trace, evidence.window_ns)))
        if trace.rail.update_period_s > 0:
            updates = min(updates, int(evidence.window_s / trace.rail.update_period_s))
        if updates < MIN_UPDATES_FLAGGED:
            verdict = Verdict.VOID if updates < MIN_UPDATES_VOID else Verdict.FLAGGED
            yield (
                verdict,
                (
                    f"{trace.rail.key} updated only {updates} times in the window of {evidence.window_s:.2f} s "
                    f"({MIN_UPDATES_FLAGGED} are wanted)"
                ),
            )
