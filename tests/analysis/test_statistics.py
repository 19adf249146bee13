"""Student's t against its table, and intervals that cover what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerlab.domain.statistics import NORMAL_95, mean_half_width, student_95, student_99


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (2, 4.303), (30, 2.042), (40, 2.0211), (60, 2.0003), (120, 1.9799)]
)
def test_the_quantile_is_the_tables(degrees, quantile):
    assert student_95(degrees) == pytest.approx(quantile, abs=2e-4)


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 63.657), (2, 9.925), (30, 2.750), (40, 2.7045), (60, 2.6603), (120, 2.6174)]
)
def test_the_wider_quantile_is_the_tables_too(degrees, quantile):
    assert student_99(degrees) == pytest.approx(quantile, abs=5e-4)
    assert student_99(degrees) > student_95(degrees)


def test_the_quantile_falls_towards_the_normals():
    quantiles = [student_95(degrees) for degrees in range(1, 200)]
    assert quantiles == sorted(quantiles, reverse=True)
    assert student_95(10**6) == pytest.approx(NORMAL_95, abs=1e-5)
    with pytest.raises(ValueError, match="at least 1 degree"):
        student_95(0)


def test_the_interval_of_three_values_covers_the_mean_19_times_in_20():
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(2000):
        values = generator.normal(7, 2, 3)
        hits += abs(values.mean() - 7) <= mean_half_width(values.tolist())
    assert hits / 2000 == pytest.approx(0.95, abs=0.015)


def test_one_value_has_no_scatter():
    assert mean_half_width([1.0]) is None
    assert mean_half_width([]) is None
    assert mean_half_width([2.0, 2.0]) == 0
    assert mean_half_width([1.0, 3.0]) == pytest.approx(12.706 * math.sqrt(2) / math.sqrt(2))
