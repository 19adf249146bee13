"""Intervals of ratios hold the true ratio as often as they say, whatever the sensors' errors, blocks and sweeps are."""

from __future__ import annotations

import math
import random

import pytest

from powerlab.analysis.comparison import compare
from powerlab.analysis.matches import between_sweeps
from tests.analysis.paired_runs import point, sweep

A, B = point(1), point(2)
EFFICIENCY, POWER = "efficiency_img_per_s_per_w", "power_w"
COUNT = 600
SLACK = 2.5 * math.sqrt(0.05 * 0.95 / COUNT)
"""What chance may take from 95 % of so many sweeps."""


def drawn(seed, **changes):
    """Return a sweep of two points by a sensor whose errors are drawn from their bounds, and the true ratio."""
    chance = random.Random(seed)
    rates, watts = (chance.uniform(50, 200), chance.uniform(50, 200)), (chance.uniform(5, 30), chance.uniform(5, 30))
    wanted = {
        "gain": chance.uniform(-0.015, 0.015),
        "gain_bound": 0.015,
        "offset_w": chance.uniform(-0.2, 0.2),
        "offset_bound_w": 0.2,
        "scatter": 0.005,
        "seed": seed,
        **changes,
    }
    truth = {A: (rates[0], watts[0]), B: (rates[1], watts[1])}
    return sweep(truth, **wanted), rates[0] / watts[0] / (rates[1] / watts[1])


def of(runs, place):
    return [run for run in runs if run.point == place]


@pytest.mark.parametrize("repeats", [3, *(pytest.param(count, marks=pytest.mark.campaign) for count in (4, 8))])
@pytest.mark.parametrize("blocks", [pytest.param(0.0, marks=pytest.mark.campaign), 0.05])
def test_the_true_ratio_is_held_where_one_sensor_sees_both(repeats, blocks):
    held = 0
    for seed in range(COUNT):
        runs, truth = drawn(seed, repeats=repeats, blocks=blocks)
        found = compare(of(runs, A), of(runs, B), EFFICIENCY)
        held += found.low <= truth <= found.high
    assert held / COUNT > 0.95 - SLACK


def test_two_devices_have_sensors_of_their_own():
    held = narrow = 0
    for seed in range(COUNT):
        (one, truth), (other, _) = drawn(seed), drawn(seed, gain=random.Random(-seed - 1).uniform(-0.015, 0.015))
        found = compare(of(one, A), of(other, B), EFFICIENCY, one_device=False)
        held += found.low <= truth <= found.high
        narrow += found.high / found.low < compare(of(one, A), of(one, B), EFFICIENCY).high / found.low
    assert held / COUNT > 0.95 - SLACK
    assert narrow < COUNT / 2  # what is not shared stays in


def test_forgetting_that_two_devices_share_nothing_would_be_noticed():
    """The test above has teeth: with cancellation where there must be none, far fewer intervals hold the truth."""
    held = 0
    for seed in range(COUNT):
        (one, truth), (other, _) = (drawn(seed, scatter=0.0005, gain=gain) for gain in (0.014, -0.014))
        found = compare(of(one, A), of(other, B), EFFICIENCY, one_device=True)
        held += found.low <= truth <= found.high
    assert held / COUNT < 0.7


@pytest.mark.parametrize("repeats", [3, pytest.param(6, marks=pytest.mark.campaign)])
def test_the_same_point_in_two_sweeps_of_one_device_is_seldom_told_from_itself(repeats):
    claimed = 0
    for seed in range(COUNT):
        chance = random.Random(seed)
        sensor = {"gain": chance.uniform(-0.015, 0.015), "offset_w": chance.uniform(-0.2, 0.2), "offset_bound_w": 0.2}
        before, after = (
            sweep({A: (100.0, 10.0)}, repeats=repeats, seed=2 * seed + number, sweep_id=name, **sensor)
            for number, name in enumerate(("before", "after"))
        )
        (match,) = between_sweeps(after, before, EFFICIENCY, one_device=True)
        assert match.ratio.paired is False
        claimed += match.claimed
    assert claimed / COUNT < 0.05 + SLACK


def test_a_gain_that_is_shared_lets_a_small_difference_be_seen():
    """2 % of efficiency, by a sensor that may be 5 % off: each figure's interval is wider than the difference."""
    truth = {A: (102.0, 10.0), B: (100.0, 10.0)}
    seen = 0
    for seed in range(200):
        runs = sweep(truth, repeats=5, scatter=0.003, gain=0.05, gain_bound=0.05, seed=seed)
        one, other = of(runs, A)[0].metric(EFFICIENCY), of(runs, B)[0].metric(EFFICIENCY)
        assert one.low < other.high
        seen += compare(of(runs, A), of(runs, B), EFFICIENCY).differs
    assert seen / 200 > 0.9


@pytest.mark.parametrize("difference", [0.0, 0.02, 0.05, 0.1])
def test_the_larger_a_difference_the_more_often_it_is_found(difference):
    shares = []
    for larger in (difference, difference + 0.05):
        truth = {A: (100.0 * (1 + larger), 10.0), B: (100.0, 10.0)}
        found = [sweep(truth, seed=seed, scatter=0.02, repeats=4) for seed in range(200)]
        shares.append(sum(compare(of(runs, A), of(runs, B), "throughput_img_per_s").differs for runs in found) / 200)
    assert shares[1] > shares[0]


def test_repeats_that_were_lost_leave_pairs_of_the_others():
    runs, truth = drawn(1, repeats=6)
    left = [run for run in runs if (run.point, run.repeat) not in {(A, 0), (B, 3)}]
    found = compare(of(left, A), of(left, B), EFFICIENCY)
    assert (found.paired, found.repeat_count) == (True, 4)
    assert found.low < truth < found.high


def test_power_alone_is_compared_like_efficiency():
    runs, _ = drawn(7, repeats=6)
    power = compare(of(runs, A), of(runs, B), POWER)
    energy = compare(of(runs, A), of(runs, B), "energy_per_image_j")
    efficiency = compare(of(runs, A), of(runs, B), EFFICIENCY)
    assert power.low < power.value < power.high
    assert energy.value * efficiency.value == pytest.approx(1)
    assert energy.low * efficiency.high == pytest.approx(1)
    assert energy.level == pytest.approx(efficiency.level)
