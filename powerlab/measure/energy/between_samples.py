"""Uncertainty of what happened between the samples of a power rail.

Samples that are evenly apart are a systematic sample of a curve. How far their sum is from its integral shows in how
much they differ from their neighbours and from the neighbours' neighbours (H. J. G. Gundersen and E. B. Jensen, *The
efficiency of systematic sampling in stereology and its prediction*, Journal of Microscopy 147, 1987):

- Steps of the load that are further apart than samples: each lies anywhere between the two samples that saw it, a
  rectangle of step × distance. After a step the next but one sample differs by as much as the next one, so summed over
  all samples the squares of differences at distance two, *S*2, are twice those at distance one, *S*1.
- Noise, and a load that changes faster than it is sampled: every sample is a draw of its own; its deviation counts
  fully, *S*1 is twice the variance, and *S*2 is equal to *S*1.

What lies between the two is split in proportion: of *S*1 the part 2 - *S*2/*S*1 is noise and the rest are steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_HELD = 1.5
"""A sensor renewed at so many sample periods shows the same value again: of those, one for each period counts."""
GAP_PERIODS = 2.5
"""From here on a distance of samples is a gap: two reads in a row that failed."""


def usual_apart_s(time_s: Floats, window_s: tuple[float, float]) -> float:
    """Return the median distance in s of samples in a window and one on either side."""
    return float(np.median(np.diff(time_s[_inside(time_s, window_s)])))


def _inside(time_s: Floats, window_s: tuple[float, float]) -> slice:
    first = max(0, int(np.searchsorted(time_s, window_s[0], side="right")) - 1)
    last = min(time_s.size, int(np.searchsorted(time_s, window_s[1], side="left")) + 1)
    return slice(min(first, last - 2), last)


def sampling_j(time_s: Floats, value_w: Floats, window_s: tuple[float, float], update_period_s: float) -> float:
    """Return the standard uncertainty in J of the integral of samples over a window, for what they did not see."""
    sampled_s = usual_apart_s(time_s, window_s)
    apart_s = max(sampled_s, update_period_s)
    if update_period_s < _HELD * sampled_s:
        seen_w = value_w[_inside(time_s, window_s)]
    else:
        due_s = np.arange(window_s[0] - apart_s, window_s[1] + apart_s, apart_s)
        seen_w = value_w[np.clip(np.searchsorted(time_s, due_s, side="right") - 1, 0, time_s.size - 1)]
    next_one, next_but_one = (float(np.sum((seen_w[lag:] - seen_w[:-lag]) ** 2)) for lag in (1, 2))
    noise = min(max(2 * next_one - next_but_one, 0.0), next_one)
    return apart_s * math.sqrt(noise / 2 + (next_one - noise) / 12)


def gap_j(time_s: Floats, value_w: Floats, window_s: tuple[float, float], update_period_s: float) -> float:
    """Return the standard uncertainty in J for where samples are missing.

    In a gap the power is anywhere within the range that was seen in the window: why samples are missing is unknown, and
    may have to do with what the machine did.
    """
    inside = _inside(time_s, window_s)
    near_w = value_w[inside]
    apart_s = np.diff(np.clip(time_s[inside], *window_s))
    gaps = np.flatnonzero(apart_s > GAP_PERIODS * max(usual_apart_s(time_s, window_s), update_period_s))
    middle_w = (near_w[gaps] + near_w[gaps + 1]) / 2
    reach_w = np.maximum(near_w.max() - middle_w, middle_w - near_w.min())
    return float(np.sqrt(np.sum((reach_w * apart_s[gaps]) ** 2) / 3))
