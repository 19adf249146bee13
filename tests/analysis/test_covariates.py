"""What else differs between two sets: said where beyond chance, corrected only as far as the runs reach."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.covariates import clock_limit_mhz, corrected_ratio, covariate_differences
from powerlab.domain.device_state import Clock, DeviceState
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Conditions
from tests.analysis.paired_runs import point, sweep

RATE = "throughput_img_per_s"


def warm(runs, temperatures, *, percent_per_c=0.0, limit_hz=None):
    """Give runs the temperature at which they began, and let their rate follow it."""
    found = []
    for run, temperature in zip(runs, temperatures, strict=True):
        factor = 1 + percent_per_c / 100 * (temperature - 40)
        metrics = [replace(one, value=one.value * factor) if one.name == RATE else one for one in run.metrics]
        metrics.append(Metric(name="start_temperature_c", value=temperature, provenance=Provenance.MEASURED))
        clocks = () if limit_hz is None else (Clock(name="policy0", high_hz=limit_hz),)
        state = Conditions(sample_period_s=0.01, device_state=DeviceState(cpu_clocks=clocks))
        found.append(replace(run, metrics=tuple(metrics), conditions=state))
    return found


def two(ones, others, *, repeats=8, percent_per_c=0.0, seed=0, limits=(None, None)):
    return [
        warm(
            sweep({point(1): (100.0, 10.0)}, repeats=repeats, seed=2 * seed + n, sweep_id=str(n), scatter=0.003),
            temperatures,
            percent_per_c=percent_per_c,
            limit_hz=limit,
        )
        for n, (temperatures, limit) in enumerate(zip((ones, others), limits, strict=True))
    ]


def drawn(middle, seed, count=8):
    chance = random.Random(seed)
    return [middle + chance.gauss(0, 1) for _ in range(count)]


def test_a_warmer_start_is_said_and_an_equal_one_is_not():
    found = []
    for offset in (0.0, 6.0):
        pair = two(drawn(40 + offset, 1), drawn(40, 2))
        (temperature,) = covariate_differences([pair])
        found.append(temperature)
    same, warmer = found
    assert (same.differs, warmer.differs) == (False, True)
    assert warmer.one - warmer.other == pytest.approx(6, abs=1.5)
    assert warmer.unit == "°C"


def test_points_that_warm_the_device_differently_do_not_hide_a_difference():
    cool, hot = (
        two(drawn(middle + 2, seed, 6), drawn(middle, seed + 1, 6), repeats=6) for middle, seed in ((30, 3), (70, 5))
    )
    (temperature,) = covariate_differences([cool, hot])
    assert temperature.differs is True
    assert temperature.other == pytest.approx(50, abs=2)


def test_another_clock_limit_differs_however_little_it_scatters():
    pair = two(drawn(40, 1), drawn(40, 2), limits=(1_200_000_000, 1_500_000_000))
    limit = next(one for one in covariate_differences([pair]) if one.title == "CPU clock limit")
    assert (limit.one, limit.other, limit.differs) == (1200.0, 1500.0, True)
    assert clock_limit_mhz(pair[0][0]) == 1200.0


def test_what_no_run_says_is_left_out():
    plain = sweep({point(1): (100.0, 10.0)})
    assert covariate_differences([(plain, plain)]) == ()
    assert corrected_ratio(plain, plain, RATE) is None


def test_a_difference_that_is_all_temperature_is_corrected_away():
    held = 0
    for seed in range(100):
        pair = two(drawn(40.8, 2 * seed), drawn(40, 2 * seed + 1), percent_per_c=-1.0, seed=seed)
        found = corrected_ratio(*pair, RATE)
        held += found.low <= 1 <= found.high
    assert held > 93
    assert found.percent_per_c == pytest.approx(-1.0, abs=0.5)
    assert found.value == pytest.approx(1, abs=0.03)


def test_no_line_is_drawn_further_than_the_runs_reach():
    assert corrected_ratio(*two(drawn(60, 1), drawn(40, 2)), RATE) is None
    assert corrected_ratio(*two([40.0] * 8, [40.0] * 8), RATE) is None
    assert corrected_ratio(*two(drawn(40, 1, 2), drawn(40, 2, 2), repeats=2), RATE) is None


@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_a_correction_does_not_depend_on_the_zero_of_the_scale(seed, shift):
    ones, others = drawn(40, seed), drawn(40.5, seed + 1)
    found = corrected_ratio(*two(ones, others, seed=seed), RATE)
    moved = corrected_ratio(*two([t + shift for t in ones], [t + shift for t in others], seed=seed), RATE)
    assert (found is None) == (moved is None)
    if found is not None:
        assert moved.value == pytest.approx(found.value, rel=1e-6)
