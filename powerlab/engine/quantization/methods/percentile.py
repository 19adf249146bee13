"""The range leaves out the most extreme of ten thousand numbers at each end.

Source: H. Wu et al., "Integer Quantization for Deep Learning Inference", https://arxiv.org/abs/2004.09602, section 3.2.
"""

from __future__ import annotations

import numpy as np

from powerlab.engine.quantization.methods.base import Method, Seen

KEPT = 0.9999
"""The share of numbers in the range, counted from either end."""


def _choose(seen: Seen) -> tuple[float, float]:
    assert seen.counts is not None  # noqa: S101  asked for
    shares = np.concatenate(([0.0], np.cumsum(seen.counts) / max(1, seen.counts.sum())))
    edges = seen.edges()
    first, last = int(np.searchsorted(shares, 1 - KEPT, side="right")) - 1, int(np.searchsorted(shares, KEPT))
    return float(edges[first]), float(edges[min(last, len(edges) - 1)])


PERCENTILE = Method(_choose, counts=True)
