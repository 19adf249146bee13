"""The range loses the least information: its distribution in 128 steps is nearest to that of the numbers seen.

Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017:
the threshold with the smallest Kullback-Leibler divergence.
Numbers at 0, which any range has exactly, do not count: behind an activation they would outweigh all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.quantization.methods.base import Method, Seen

_STEPS = 128
_TRIED = 64
"""How many thresholds are tried, evenly from the first that has a bin for each step."""


def _choose(seen: Seen) -> tuple[float, float]:
    assert seen.counts is not None  # noqa: S101  asked for
    edges = seen.edges()
    sizes = np.abs((edges[1:] + edges[:-1]) / 2)
    most = float(max(abs(seen.low), abs(seen.high)))
    bins = len(seen.counts)
    folded, _ = np.histogram(sizes, bins=bins, range=(0.0, most), weights=seen.counts)
    folded[0] = folded[1]
    ends = np.unique(np.linspace(_STEPS, bins, _TRIED).astype(int))
    best = min(ends, key=lambda end: (_divergence(folded, int(end)), -end))
    threshold = most * float(best) / bins
    return max(seen.low, -threshold), min(seen.high, threshold)


def _divergence(counts: NDArray[Any], end: int) -> float:
    """Return how far the numbers are from what is left of them if those from bin ``end`` on saturate."""
    kept = counts[:end].astype(np.float64)
    clipped = kept.copy()
    clipped[-1] += counts[end:].sum()
    step = np.arange(end) * _STEPS // end
    filled = kept > 0
    totals = np.bincount(step, weights=kept, minlength=_STEPS)
    places = np.bincount(step, weights=filled, minlength=_STEPS)
    coarse = np.where(filled, totals[step] / np.maximum(places[step], 1), 0.0)
    p, q = clipped / max(clipped.sum(), 1e-30), coarse / max(coarse.sum(), 1e-30)
    both = p > 0
    return float(np.sum(p[both] * np.log(p[both] / np.maximum(q[both], 1e-12))))


ENTROPY = Method(_choose, counts=True)
