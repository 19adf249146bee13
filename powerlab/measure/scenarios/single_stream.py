"""Single-stream: one inference after the other, judged by its 90th percentile."""

from __future__ import annotations

from powerlab.measure.scenarios.closed_loop import ClosedLoop

SINGLE_STREAM = ClosedLoop(early_metric="latency_p90_early_ms", early_fraction=0.90)
