"""MLPerf's early stopping: what a number of queries proves about a latency percentile, for any distribution.

MLPerf Inference (loadgen, ``early_stopping.cc``) asks how surely a percentile lies below a latency. Of ``n`` queries,
the number that take longer than the true percentile ``p`` is binomial(n, 1 - p). Where ``t`` or fewer of them would
come with a probability of less than 1 - confidence, a latency that at most ``t`` queries exceed is above the percentile
with that confidence (the one-sided interval of Clopper and Pearson, Biometrika 26, 1934).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.measure.percentiles.binomial import binomial_cdf

CONFIDENCE = 0.99


def allowed_over(count: int, fraction: float, confidence: float = CONFIDENCE) -> int:
    """Return how many of ``count`` queries may exceed a latency that is at least the percentile; -1 where none may."""
    return int(np.searchsorted(binomial_cdf(count, 1 - fraction), 1 - confidence, side="left")) - 1


def early_estimate(ordered: NDArray[np.float64], fraction: float) -> float | None:
    """Return a latency that the percentile does not exceed, with 99 % confidence.

    As loadgen does, one query more is let go than must be: the ``t``-th largest value is given, and not the one below.

    Args:
        ordered: the latencies in rising order, shape (n,).
        fraction: the percentile, 0.99 for the 99th.

    Returns:
        the estimate in the unit of ``ordered``; None for fewer queries than it takes (64 for the 90th percentile, 662
        for the 99th).
    """
    over = allowed_over(ordered.size, fraction)
    return float(ordered[ordered.size - over]) if over >= 1 else None


def confidence_held(count: int, over: int, fraction: float) -> float:
    """Return how sure, 0 to 1, it is that a percentile holds a bound that ``over`` of ``count`` queries exceed."""
    return max(0.0, 1.0 - float(binomial_cdf(count, 1 - fraction)[over]))
