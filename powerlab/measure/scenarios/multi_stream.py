"""Multi-stream: queries of eight images, one after the other; their 99th percentile latency is judged.

How many inferences a query takes follows from the batch size.
"""

from __future__ import annotations

from powerlab.measure.scenarios.closed_loop import ClosedLoop

MULTI_STREAM = ClosedLoop(early_metric="latency_p99_early_ms", early_fraction=0.99)
