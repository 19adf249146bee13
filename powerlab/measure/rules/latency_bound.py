"""``latency-bound``: queries of the server scenario exceeded the latency bound."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def latency_bound(evidence: Evidence) -> Iterator[Judgement]:
    """A throughput within a bound is none where the bound is not held."""
    bound_ms = 0.0 if evidence.workload is None else evidence.workload.latency_bound_ms
    found_ms = evidence.latency_p99_ms
    if bound_ms > 0 and found_ms is not None and found_ms > bound_ms:
        yield (
            Verdict.FLAGGED,
            f"the 99th percentile of latency is {found_ms:.4g} ms, above the bound of {bound_ms:.4g} ms",
        )
