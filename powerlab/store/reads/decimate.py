"""Decimation of long traces for drawing, without losing peaks."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Trace


class Bucket(StrEnum):
    """What stands for a bucket of neighbouring samples: its two extremes at their own times, or its mean."""

    MINMAX = "minmax"
    MEAN = "mean"


def decimate(trace: Trace, points: int, bucket: Bucket = Bucket.MINMAX) -> Trace:
    """Return a trace of at most ``points`` samples; a shorter one is returned as it is.

    Buckets hold equally many samples, not equal times: every sample counts once in a mean. With extremes the first and
    the last sample stay as well, from four points on.

    Args:
        trace: n samples.
        points: at least 2.
        bucket: extremes (real samples) or means (at the mean time of their samples).
    """
    if points < 2:
        raise ValueError(f"{points} points cannot show a trace")
    count = len(trace.time_ns)
    if count <= points:
        return trace
    if bucket is Bucket.MEAN:
        return _means(trace, (np.arange(points) * count) // points)
    ends = points >= 4
    buckets = (points - 2) // 2 if ends else 1
    chosen = _extremes(trace.value, (np.arange(buckets) * count) // buckets, (0, count - 1) if ends else ())
    return replace(trace, time_ns=trace.time_ns[chosen], value=trace.value[chosen])


def _means(trace: Trace, starts: NDArray[np.int64]) -> Trace:
    sizes = np.diff(starts, append=len(trace.time_ns))
    origin = trace.time_ns[0]
    time_ns = origin + np.add.reduceat(trace.time_ns - origin, starts) // sizes
    return replace(trace, time_ns=time_ns, value=np.add.reduceat(trace.value, starts) / sizes)


def _extremes(value: NDArray[np.float64], starts: NDArray[np.int64], more: tuple[int, ...]) -> NDArray[np.intp]:
    edges = [*starts.tolist(), len(value)]
    chosen = set(more)
    for start, end in pairwise(edges):
        part = value[start:end]
        chosen.update((start + int(part.argmin()), start + int(part.argmax())))
    return np.array(sorted(chosen), dtype=np.intp)
