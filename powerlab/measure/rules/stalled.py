"""``stalled``: the workload stopped for a while."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from powerlab.domain.run import Verdict
from powerlab.domain.workload import Scenario
from powerlab.measure.evidence import Evidence
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.rules.base import SHARE_FLAGGED, Judgement

STALL_TIMES, LEAST_STALL_S = 10.0, 0.5
"""A quota of processor time stops a worker for up to 0.1 s in every period: that is the mode, and no stall."""


def stalled_s(timed: TimedInferences) -> float:
    """Return how long queries, and pauses between them, took beyond what is usual, counting only long ones."""
    edges_s = np.append(timed.start_ns - timed.start_ns[0], timed.end_ns[-1] - timed.start_ns[0]) / 1e9
    apart_s = np.diff(edges_s)
    usual_s = float(np.median(apart_s))
    return float(np.sum(apart_s - usual_s, where=apart_s > max(STALL_TIMES * usual_s, LEAST_STALL_S)))


def stalled(evidence: Evidence) -> Iterator[Judgement]:
    """A worker that was stopped leaves percentiles as they were, and mixes the power of load and of none.

    In the server scenario pauses are part of the load, and the bound judges what takes long.
    """
    share = evidence.stalled_s / evidence.window_s if evidence.window_s > 0 else 0.0
    server = evidence.workload is not None and evidence.workload.scenario is Scenario.SERVER
    if share > SHARE_FLAGGED and not server:
        yield (
            Verdict.FLAGGED,
            f"queries and pauses between them took {evidence.stalled_s:.2g} s longer than is usual, {share:.0%} of the "
            "window: the worker was held up",
        )
