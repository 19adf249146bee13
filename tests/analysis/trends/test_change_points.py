"""Change points: planted changes are found where they are, and series without a change have none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.analysis.trends.change_points import LEVEL, change_points, fewest_values

COUNT = 400


def normal(random, count):
    return random.normal(0, 1, count)


def heavy_tailed(random, count):
    return random.standard_t(2, count)


def skewed(random, count):
    return random.exponential(1, count) ** 2


@pytest.mark.parametrize("draw", [normal, heavy_tailed, skewed])
@pytest.mark.parametrize("length", [10, pytest.param(30, marks=pytest.mark.campaign)])
def test_series_without_a_change_have_one_as_seldom_as_it_says(draw, length):
    random = np.random.default_rng(3)
    found = sum(bool(change_points(draw(random, length), 0.05)) for _ in range(COUNT))
    assert found / (COUNT) < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / (COUNT))


@pytest.mark.parametrize("at", [5, 10, 20])
def test_a_change_of_six_deviations_is_found_where_it_is(at):
    random = np.random.default_rng(4)
    for _ in range(20):
        values = random.normal(0, 1, 25)
        values[at:] += 6
        assert [change.index for change in change_points(values)] == [at]


def test_several_changes_are_found_in_their_order():
    random = np.random.default_rng(5)
    values = random.normal(0, 1, 60)
    values[20:] += 5
    values[40:] -= 9
    assert [change.index for change in change_points(values)] == [20, 40]


def test_an_outlier_alone_is_no_change():
    values = [100.0, 100.1, 99.9, 100.0, 100.1, 99.9, 150.0, 100.0, 100.1, 99.9, 100.0, 100.1]
    assert change_points(values) == ()


def test_equal_values_and_short_series_have_no_change():
    assert change_points([1.0] * 50) == ()
    assert change_points([0.0] * 4 + [1.0] * 5) == ()
    assert change_points([]) == ()


@pytest.mark.parametrize("level", [0.05, 0.01, 0.001])
def test_the_fewest_values_are_enough_and_one_less_is_not(level):
    count = fewest_values(level)
    values = np.concatenate([np.zeros(count // 2), np.ones(count - count // 2)])
    assert change_points(values[:-1], level) == ()
    assert [change.index for change in change_points(np.append(values, 1.0), level)] == [count // 2]


@settings(max_examples=20)
@given(
    st.lists(st.floats(-10, 10), min_size=8, max_size=25),
    st.floats(0.1, 100),
    st.floats(-1000, 1000),
)
def test_unit_and_origin_change_nothing(values, factor, shift):
    rounded = np.round(values, 3)
    found = change_points(rounded, 0.05)
    assert change_points(rounded * 2 - 8, 0.05) == found
    moved = change_points(rounded * factor + shift, 0.05)
    assert [change.index for change in moved] == [change.index for change in found]


def test_the_same_series_has_the_same_changes():
    values = np.random.default_rng(6).normal(0, 1, 40)
    values[15:] += 1.2
    assert change_points(values, LEVEL) == change_points(values, LEVEL)
