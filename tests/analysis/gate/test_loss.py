"""The loss between two sides of sweeps: its arithmetic, and that its intervals hold the truth."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.gate.loss import Loss, loss, to_logarithm, to_part, upper_quantile
from powerlab.analysis.gate.samples import Sample
from powerlab.domain.quantity import Provenance
from powerlab.domain.statistics import student_95, student_99

RATE, TIME = "throughput_img_per_s", "latency_p50_ms"
METRICS = st.sampled_from([RATE, TIME])


def samples(*values, count=3, variance=0.0):
    return [
        Sample(
            sweep_id=str(number),
            logarithm=math.log(value),
            variance=variance,
            count=count,
            provenance=Provenance.MEASURED,
        )
        for number, value in enumerate(values)
    ]


@given(METRICS, st.floats(-0.8, 0.8))
def test_a_part_survives_the_logarithm(name, part):
    assert to_part(name, to_logarithm(name, part)) == pytest.approx(part, abs=1e-12)


def test_less_rate_and_more_time_are_losses():
    assert loss(RATE, samples(100, 100), samples(97, 97)).part == pytest.approx(0.03)
    assert loss(TIME, samples(100, 100), samples(103, 103)).part == pytest.approx(0.03)
    assert loss(RATE, samples(100, 100), samples(103, 103)).part == pytest.approx(-0.03)


VALUES = st.lists(st.floats(50, 200), min_size=2, max_size=6)


@given(METRICS, VALUES, VALUES, st.floats(0.1, 10))
def test_a_unit_changes_nothing(name, one, other, factor):
    found = loss(name, samples(*one), samples(*other))
    scaled = loss(name, samples(*(value * factor for value in one)), samples(*(value * factor for value in other)))
    assert scaled.logarithm == pytest.approx(found.logarithm, abs=1e-9)
    assert scaled.error == pytest.approx(found.error, abs=1e-9)


@given(METRICS, VALUES, VALUES)
def test_the_sides_changed_is_the_loss_turned(name, one, other):
    there, back = loss(name, samples(*one), samples(*other)), loss(name, samples(*other), samples(*one))
    assert back.logarithm == pytest.approx(-there.logarithm, abs=1e-12)
    assert back.error == pytest.approx(there.error)
    assert back.degrees == there.degrees == len(one) + len(other) - 2


@given(METRICS, st.floats(-0.2, 0.2), st.floats(0.001, 0.1), st.integers(1, 30), st.floats(-0.3, 0.3))
def test_above_and_below_a_limit_share_one_probability(name, size, error, degrees, limit):
    found = Loss(metric=name, logarithm=size, deviation=error, error=error, degrees=degrees)
    assert found.level_above(limit) + found.level_below(limit) == pytest.approx(1)
    low, high = found.interval()
    assert found.level_above(low) == pytest.approx(0.025, abs=1e-6)
    assert found.level_below(high) == pytest.approx(0.025, abs=1e-6)


def test_without_scatter_everything_is_certain():
    found = loss(RATE, samples(100, 100), samples(97, 97))
    assert (found.level_above(0.02), found.level_below(0.02)) == (0.0, 1.0)
    assert (found.level_above(0.04), found.level_below(0.04)) == (1.0, 0.0)


def test_one_sweep_on_each_side_says_nothing():
    assert loss(RATE, samples(100), samples(97)) is None
    assert loss(RATE, samples(100, 101, 99), []) is None
    assert loss(RATE, samples(100, 101), samples(97)).degrees == 1


def test_fewer_repeats_of_the_candidate_widen_the_interval():
    baseline = samples(100, 101, 99, count=9, variance=0.0004)
    alike = loss(RATE, baseline, samples(97, count=9, variance=0.0004))
    fewer = loss(RATE, baseline, samples(97, count=3, variance=0.0004))
    assert fewer.error**2 - alike.error**2 == pytest.approx(0.0004 * (1 / 3 - 1 / 9))
    assert loss(RATE, baseline, samples(97, count=20, variance=0.0004)).error == alike.error


@pytest.mark.parametrize("degrees", [1, 2, 5, 30, 200])
def test_quantiles_are_students(degrees):
    assert upper_quantile(0.025, degrees) == pytest.approx(student_95(degrees), rel=1e-3)
    assert upper_quantile(0.005, degrees) == pytest.approx(student_99(degrees), rel=1e-3)


@pytest.mark.parametrize(("before", "after"), [(2, 2), (5, 1), (3, 6)])
def test_the_interval_holds_the_true_loss_as_often_as_it_says(before, after):
    chance, held, count = random.Random(1), 0, 1500
    for _ in range(count):
        sides = [
            samples(*(100 * factor * math.exp(chance.gauss(0, 0.01)) for _ in range(size)))
            for size, factor in ((before, 1.0), (after, 0.97))
        ]
        low, high = loss(RATE, *sides).interval()
        held += low <= 0.03 <= high
    assert abs(held / count - 0.95) < 3 * math.sqrt(0.05 * 0.95 / count)
