"""The binomial distribution, the basis of all statements about percentiles."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def binomial_cdf(count: int, fraction: float) -> NDArray[np.float64]:
    """Return P(B <= k) for k = 0..count of a binomial B, summed from logarithms so that nothing underflows early."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, count + 1)))))
    k = np.arange(count + 1)
    log_p = log_factorial[count] - log_factorial[k] - log_factorial[count - k]
    log_p += k * math.log(fraction) + (count - k) * math.log1p(-fraction)
    return np.cumsum(np.exp(log_p))
