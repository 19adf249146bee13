"""What samples leave open: between them, where they are missing, and in their rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.measure.energy.between_samples import gap_j, sampling_j, usual_apart_s
from powerlab.measure.energy.quantisation import level_bounds_j

SEEDS = st.integers(0, 2**32)
WINDOW = (0.0, 50.0)
SQRT12 = math.sqrt(12)


def test_noise_of_samples_averages_out():
    rng = np.random.default_rng(1)
    time_s = np.arange(0, 50.001, 0.01)
    found = sampling_j(time_s, rng.normal(20, 0.5, time_s.size), WINDOW, 0.0)
    assert found == pytest.approx(0.5 * math.sqrt(50 * 0.01), rel=0.05)


def test_a_step_lies_anywhere_between_the_two_samples_that_saw_it():
    time_s = np.arange(0, 50.001, 0.1)
    power_w = np.where(time_s < 20, 5.0, 25.0)
    assert sampling_j(time_s, power_w, WINDOW, 0.0) == pytest.approx(20 * 0.1 / SQRT12)


def test_a_sensor_that_holds_its_value_is_sampled_as_often_as_it_is_renewed():
    """Reading it ten times as often tells no more."""
    rng = np.random.default_rng(2)
    slow_s, fast_s = np.arange(0, 50.001, 0.1), np.arange(0, 50.001, 0.01)
    power_w = rng.choice([10.0, 30.0], slow_s.size)
    held_w = power_w[np.minimum((fast_s / 0.1 + 0.5).astype(int), power_w.size - 1)]
    slow, fast = sampling_j(slow_s, power_w, WINDOW, 0.1), sampling_j(fast_s, held_w, WINDOW, 0.1)
    assert fast == pytest.approx(slow, rel=0.1)


@pytest.mark.parametrize("dwell_s", [0.02, 0.1, 0.5, 3.0])
def test_the_errors_of_a_load_that_jumps_at_random_are_as_large_as_stated_and_not_three_times(dwell_s):
    rng = np.random.default_rng(3)
    errors, stated = [], []
    for _ in range(150):
        edges = np.concatenate(([0.0], np.cumsum(rng.exponential(dwell_s, int(100 / dwell_s) + 20))))
        levels = np.where(np.arange(edges.size - 1) % 2, 10.0, 20.0)
        joules = np.concatenate(([0.0], np.cumsum(levels * np.diff(edges))))
        time_s = np.arange(0, 50.001, 0.1)
        power_w = levels[np.searchsorted(edges, time_s, side="right") - 1]
        errors.append(np.trapezoid(power_w, time_s) - np.diff(np.interp([0, time_s[-1]], edges, joules))[0])
        stated.append(sampling_j(time_s, power_w, WINDOW, 0.0))
    ratio = np.median(stated) / np.std(errors)
    assert 0.85 <= ratio <= 1.9


@given(seed=SEEDS, factor=st.floats(0.01, 100))
def test_it_scales_with_the_power(seed, factor):
    power_w = np.random.default_rng(seed).uniform(0, 100, 500)
    time_s = np.arange(500) * 0.1
    for found, scaled in (
        (sampling_j(time_s, power_w, WINDOW, 0.0), sampling_j(time_s, power_w * factor, WINDOW, 0.0)),
        (gap_j(time_s, power_w, (-5.0, 55.0), 0.0), gap_j(time_s, power_w * factor, (-5.0, 55.0), 0.0)),
    ):
        assert scaled == pytest.approx(found * factor, rel=1e-6, abs=1e-9)


def test_samples_without_a_hole_have_no_gap():
    time_s = np.arange(0, 50, 0.1) + np.random.default_rng(4).uniform(-0.04, 0.04, 500)
    assert gap_j(time_s, np.linspace(0, 100, 500), WINDOW, 0.0) == 0


def test_in_a_gap_the_power_is_anywhere_within_what_was_seen():
    time_s = np.concatenate((np.arange(0, 20, 0.1), np.arange(22, 50.001, 0.1)))
    power_w = np.where(np.arange(time_s.size) % 2, 10.0, 30.0)
    found = gap_j(time_s, power_w, WINDOW, 0.0)
    reach_w = 10.0 if power_w[199] != power_w[200] else 20.0
    assert found == pytest.approx(reach_w * (22 - time_s[199]) / math.sqrt(3))


def test_a_gap_over_the_windows_end_counts_as_far_as_it_lies_in_the_window():
    time_s = np.concatenate((np.arange(0, 49, 0.1), [55.0]))
    power_w = np.where(np.arange(time_s.size) % 2, 10.0, 30.0)
    inside_s = 50 - time_s[-2]
    assert 10.0 * inside_s / math.sqrt(3) * 0.99 <= gap_j(time_s, power_w, WINDOW, 0.0) <= 20.0 * inside_s


def test_a_slow_sensor_has_no_gaps_between_its_own_periods():
    time_s = np.arange(0, 50.001, 1.0)
    assert gap_j(time_s, np.linspace(0, 100, 51), WINDOW, 1.0) == 0


def test_a_power_that_never_moves_is_rounded_alike_all_the_time():
    time_s = np.arange(0, 50.001, 0.1)
    assert level_bounds_j(time_s, np.full(501, 20.0), WINDOW, 0.4) == (pytest.approx(0.4 * 50 / SQRT12), 0.0)


def test_two_levels_are_rounded_each_in_its_own_way():
    time_s = np.arange(0, 50.001, 0.1)
    power_w = np.where(np.arange(501) % 10 < 7, 20.0, 10.0)
    widest, rest = level_bounds_j(time_s, power_w, WINDOW, 0.4)
    assert widest == pytest.approx(0.4 * 35 / SQRT12, rel=0.02)
    assert rest == pytest.approx(0.4 * 15 / SQRT12, rel=0.02)


def test_a_level_that_the_power_passes_through_is_rounded_up_as_long_as_down():
    time_s = np.arange(0, 50.001, 0.1)
    power_w = np.round(np.linspace(10.0, 11.99, 501) / 0.4) * 0.4
    widest, rest = level_bounds_j(time_s, power_w, WINDOW, 0.4)
    ends = (np.count_nonzero(power_w == power_w[0]) * 0.1, np.count_nonzero(power_w == power_w[-1]) * 0.1)
    assert widest == pytest.approx(0.4 * max(ends) / SQRT12, rel=0.05)
    assert rest == pytest.approx(0.4 * min(ends) / SQRT12, rel=0.05)


@given(seed=SEEDS, step=st.floats(0.01, 5))
def test_rounding_is_never_more_than_the_full_bound_and_nothing_without_a_step(seed, step):
    rng = np.random.default_rng(seed)
    time_s = np.arange(0, 50.001, 0.1)
    power_w = np.round(rng.uniform(0, 40, 501) / step) * step
    assert math.hypot(*level_bounds_j(time_s, power_w, WINDOW, step)) <= step * 50 / SQRT12 * (1 + 1e-9)
    assert level_bounds_j(time_s, power_w, WINDOW, 0.0) == (0.0, 0.0)


APART_S = np.array([0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0])


@pytest.mark.parametrize(
    ("window_s", "median_s"),
    [
        ((3.5, 9.5), 3.5),
        ((3.0, 10.0), 3.5),
        ((3.0, 6.0), 3.0),
        ((3.0, 6.1), 3.5),
        ((2.9, 6.0), 2.5),
        ((10.2, 10.4), 5.0),
        ((-5.0, 0.5), 1.0),
        ((30.0, 40.0), 6.0),
        ((-5.0, 40.0), 3.5),
    ],
)
def test_the_distance_of_samples_is_that_in_the_window_and_one_on_either_side(window_s, median_s):
    assert usual_apart_s(APART_S, window_s) == median_s


def test_a_part_of_the_differences_is_noise_and_the_rest_are_steps():
    """Differences of neighbours: 16 + 0 + 0 + 9 + 0; of the next but one: 16 + 0 + 9 + 9; noise 50 - 34."""
    time_s, power_w = np.arange(6.0), np.array([5.0, 1.0, 1.0, 1.0, 4.0, 4.0])
    assert sampling_j(time_s, power_w, (0.0, 5.0), 0.0) == pytest.approx(math.sqrt(16 / 2 + 9 / 12))
    assert sampling_j(2 * time_s, power_w, (0.0, 10.0), 0.0) == pytest.approx(2 * math.sqrt(16 / 2 + 9 / 12))


def test_only_samples_in_the_window_and_one_on_either_side_count():
    time_s, power_w = np.arange(10.0), np.array([90.0, 70.0, 5.0, 1.0, 1.0, 1.0, 4.0, 4.0, 50.0, 99.0])
    assert sampling_j(time_s, power_w, (2.5, 6.5), 0.0) == pytest.approx(math.sqrt(16 / 2 + 9 / 12))


def test_of_a_held_value_one_sample_a_period_counts_from_one_before_the_window_to_its_end():
    """Renewed every second and read four times as often: seconds 1 to 6 of the window from 2 to 6.5 s."""
    power_w = np.repeat([90.0, 5.0, 1.0, 1.0, 1.0, 4.0, 4.0, 70.0], 4)
    time_s = np.arange(power_w.size) / 4
    for window_s in ((2.0, 6.0), (2.1, 6.0)):
        found = sampling_j(time_s, power_w, window_s, 1.0)
        assert found == pytest.approx(math.sqrt(16 / 2 + 9 / 12)), window_s
    # 1.5 sample periods and more are held; at 2 periods of 0.5 s the samples at 0, 1, 2 s count, and not those between.
    between_w = np.array([1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0])
    assert sampling_j(np.arange(7) / 2, between_w, (1.0, 3.0), 1.0) == 0
    assert sampling_j(np.arange(7) / 2, between_w, (1.0, 3.0), 0.7) > 3
    assert sampling_j(np.arange(7.0), between_w, (1.0, 5.0), 1.5) != sampling_j(
        np.arange(7.0), between_w, (1.0, 5.0), 1.4
    )


def test_before_the_first_sample_and_after_the_last_their_values_count():
    time_s = np.arange(0, 4, 0.25)
    power_w = np.repeat([2.0, 6.0, 6.0, 6.0], 4)
    found = sampling_j(time_s, power_w, (0.0, 6.0), 1.0)
    assert found == pytest.approx(4 / SQRT12), "one step of 4 W, seen between two samples"


def test_the_range_of_what_was_seen_bounds_a_gap():
    time_s = np.array([0.0, 1.0, 2.0, 5.0, 6.0, 7.0])
    up_w, down_w = np.array([10.0, 12.0, 20.0, 14.0, 10.0, 16.0]), np.array([10.0, 30.0, 12.0, 10.0, 11.0, 12.0])
    assert gap_j(time_s, up_w, (0.5, 6.5), 0.0) == pytest.approx((17 - 10) * 3 / math.sqrt(3))
    assert gap_j(time_s, down_w, (0.5, 6.5), 0.0) == pytest.approx((30 - 11) * 3 / math.sqrt(3))
    assert gap_j(time_s, up_w, (0.5, 6.5), 2.0) == 0, "a sensor renewed every 2 s has no gap there"
    assert gap_j(time_s, up_w, (0.5, 4.8), 0.0) == pytest.approx((17 - 10) * 2.8 / math.sqrt(3)), "inside the window"


def test_a_gap_is_longer_than_two_and_a_half_distances_and_gaps_add_in_squares():
    power_w = np.array([10.0, 20.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    assert gap_j(np.array([0.0, 1.0, 2.0, 4.5, 5.5, 6.5, 7.5]), power_w, (0.0, 7.5), 0.0) == 0
    two = gap_j(np.array([0.0, 1.0, 2.0, 5.0, 6.0, 10.0, 11.0]), power_w, (0.0, 11.0), 0.0)
    assert two == pytest.approx(10 * 5 / math.sqrt(3))
