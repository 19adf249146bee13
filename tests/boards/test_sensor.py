"""What a simulated sensor makes of a power: lag, averaging, noise, steps, period."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator.sensor import Sensor

TICK_NS = 10_000_000
WATTS = st.floats(0.0, 500.0)


def readings(sensor: Sensor, watts: list[float], seed: int = 1, tick_ns: int = TICK_NS) -> list[float | None]:
    noise = random.Random(seed)
    return [sensor.observe(1_000_000_000 + index * tick_ns, value, noise) for index, value in enumerate(watts)]


@given(st.lists(WATTS, min_size=1, max_size=30))
def test_a_perfect_sensor_shows_the_truth_at_every_look(watts: list[float]) -> None:
    assert readings(Sensor(0.0), watts) == watts


@given(WATTS, st.floats(0.001, 2.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_constant_power_is_shown_as_it_is(watts: float, period_s: float, averaging_s: float, lag_s: float) -> None:
    found = readings(Sensor(period_s, averaging_s=averaging_s, lag_s=lag_s), [watts] * 60)
    assert found[0] == pytest.approx(watts)
    assert [value for value in found if value is not None] == pytest.approx(
        [watts] * sum(value is not None for value in found)
    )


@given(st.integers(1, 20))
def test_the_value_changes_once_a_period(ticks: int) -> None:
    found = readings(Sensor(ticks * TICK_NS / 1e9), [1.0] * 101)
    fresh = [index for index, value in enumerate(found) if value is not None]
    assert fresh == list(range(0, 101, ticks))


def test_a_late_look_does_not_delay_the_periods_marks() -> None:
    sensor, noise = Sensor(1.0), random.Random(1)
    times_s = (0.0, 0.5, 1.4, 1.9, 2.0, 5.7, 5.9, 6.0)
    found = [sensor.observe(round(time * 1e9), 1.0, noise) is not None for time in times_s]
    assert found == [True, False, True, False, True, True, False, True]


@given(st.lists(WATTS, min_size=2, max_size=40), st.integers(1, 20))
def test_averaging_shows_the_mean_of_the_window(watts: list[float], window: int) -> None:
    found = readings(Sensor(0.0, averaging_s=window * TICK_NS / 1e9), watts)
    for index in range(1, len(watts)):
        inside = watts[max(1, index - window + 1) : index + 1]
        assert found[index] == pytest.approx(sum(inside) / len(inside), abs=1e-6)


@given(st.lists(WATTS, min_size=1, max_size=40), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_no_filter_leaves_the_range_of_what_it_filters(watts: list[float], lag_s: float, averaging_s: float) -> None:
    for value in readings(Sensor(0.0, averaging_s=averaging_s, lag_s=lag_s), watts):
        assert value is not None
        assert min(watts) - 1e-6 <= value <= max(watts) + 1e-6


@given(st.floats(0.05, 2.0), st.integers(1, 100))
def test_a_lag_follows_a_step_exponentially(lag_s: float, ticks: int) -> None:
    found = readings(Sensor(0.0, lag_s=lag_s), [0.0] + [10.0] * ticks)
    assert found[-1] == pytest.approx(10.0 * (1.0 - math.exp(-ticks * 0.01 / lag_s)))


def test_a_filter_loses_no_energy() -> None:
    """What a lag delays it shows later: over a pulse and the time after it, the sums agree."""
    pulse = [0.0] * 50 + [20.0] * 30 + [0.0] * 500
    shown = readings(Sensor(0.0, averaging_s=0.2, lag_s=0.1), pulse)
    assert sum(value or 0.0 for value in shown) == pytest.approx(sum(pulse), rel=1e-3)


@given(WATTS, st.floats(0.001, 1.0))
def test_readings_are_whole_steps_and_no_more_than_half_a_step_off(watts: float, step_w: float) -> None:
    (value,) = readings(Sensor(0.0, step_w=step_w), [watts])
    assert value is not None
    assert value / step_w == pytest.approx(round(value / step_w), abs=1e-6)
    assert abs(value - watts) <= step_w / 2 + 1e-9


@pytest.mark.parametrize("watts", [0.05, 0.19, 0.77, 2.9, 14.6])
def test_noise_leaves_the_mean_alone(watts: float) -> None:
    found = readings(Sensor(0.0, noise_relative=0.01, noise_w=0.05), [watts] * 20_000)
    values = [value for value in found if value is not None]
    assert sum(values) / len(values) == pytest.approx(watts, abs=0.002)
    assert len(set(values)) > 1000


def test_a_rail_that_is_off_has_no_noise_that_would_look_like_power() -> None:
    assert set(readings(Sensor(0.0, noise_relative=0.5, noise_w=1.0), [0.0] * 100)) == {0.0}


@given(WATTS)
def test_no_reading_is_negative(watts: float) -> None:
    found = readings(Sensor(0.0, noise_relative=1.0, noise_w=5.0), [watts] * 50)
    assert all(value is not None and value >= 0.0 for value in found)


def test_the_noise_is_repeatable() -> None:
    sensors = [Sensor(0.0, noise_relative=0.1) for _ in range(3)]
    first, second, other = (readings(sensor, [3.0] * 20, seed) for sensor, seed in zip(sensors, (7, 7, 8), strict=True))
    assert first == second != other
