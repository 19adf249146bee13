"""Short traces keep their peaks, or their mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.store.reads.decimate import Bucket, decimate
from server_examples import make_trace


@given(st.integers(1, 3000), st.integers(2, 200), st.sampled_from(Bucket))
def test_never_more_points_than_asked_for(count: int, points: int, bucket: Bucket) -> None:
    short = decimate(make_trace(count=count), points, bucket)
    assert 1 <= len(short.time_ns) <= max(points, 1)
    assert len(short.time_ns) == len(short.value)
    assert np.all(np.diff(short.time_ns) > 0)


@given(st.integers(201, 3000), st.integers(2, 200), st.integers(0, 5))
def test_extremes_stay_where_they_were(count: int, points: int, seed: int) -> None:
    trace = make_trace(count=count, seed=seed)
    short = decimate(trace, points)
    assert short.value.max() == trace.value.max()
    assert short.value.min() == trace.value.min()
    samples = dict(zip(trace.time_ns.tolist(), trace.value.tolist(), strict=True))
    assert all(samples[t] == v for t, v in zip(short.time_ns.tolist(), short.value.tolist(), strict=True))


def test_means_of_equal_buckets_keep_the_mean() -> None:
    trace = make_trace(count=1000)
    short = decimate(trace, 100, Bucket.MEAN)
    assert len(short.value) == 100
    assert short.value.mean() == pytest.approx(trace.value.mean(), rel=1e-12)


def test_a_short_trace_is_left_alone() -> None:
    trace = make_trace(count=10)
    assert decimate(trace, 10) is trace


def test_one_point_is_refused() -> None:
    with pytest.raises(ValueError, match="1 points"):
        decimate(make_trace(), 1)
