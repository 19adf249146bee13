"""Two points that are the same: one beats the other in no more than 5 of 100 sweeps."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from powerlab.analysis.comparison import compare
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from tests.truth.harness import run_of, two_sets

SWEEPS = 100
ONE, OTHER = (Point(workload=Workload(model="m", batch_size=1), threads=threads, mode="current") for threads in (1, 2))


@cache
def ratios(repeats):
    found = []
    for seed in range(SWEEPS):
        sets = two_sets(seed, repeats)
        ones, others = (
            [run_of(recording, point, repeat) for repeat, recording in enumerate(recordings)]
            for point, recordings in zip((ONE, OTHER), sets, strict=True)
        )
        found.append(compare(ones, others, "power_w"))
    return tuple(found)


@pytest.mark.campaign
@pytest.mark.parametrize("repeats", [3, 6])
def test_a_claim_that_one_beats_the_other_is_rare(repeats):
    claims = [ratio.differs for ratio in ratios(repeats)]
    assert all(claim is not None for claim in claims)
    assert np.mean(claims) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / SWEEPS)


@pytest.mark.campaign
def test_more_repeats_make_the_comparison_surer():
    few, many = (np.median([ratio.high / ratio.low for ratio in ratios(repeats)]) for repeats in (3, 6))
    assert many < few
