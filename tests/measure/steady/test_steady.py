"""The test of steadiness: seldom a false alarm on noise, and no exponential or ramp that matters passes for steady."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.measure.steady.drift import LEAST_VALUES, Answer, drift

AHEAD_S = 5.0
PIECE_S = 0.1
DRAWS = 300


def autoregressive(rng: np.random.Generator, count: int, correlation: float) -> np.ndarray:
    """Return AR(1) noise of standard deviation 1, long after its start."""
    innovations = rng.normal(size=count + 200) * math.sqrt(1 - correlation**2)
    noise = np.zeros(count + 200)
    for index in range(1, count + 200):
        noise[index] = correlation * noise[index - 1] + innovations[index]
    return noise[200:]


def places(count: int) -> np.ndarray:
    """Return the times of as many pieces, the last half of a warm-up."""
    return (np.arange(count) + count) * PIECE_S


def share(rng: np.random.Generator, shape: np.ndarray, noise: float, correlation: float, wanted: Answer) -> float:
    """Return how often a series around 100 that follows a shape gets an answer, where 1 % may be."""
    time_s = places(shape.size)
    answers = [
        drift(time_s, 100 + shape + noise * autoregressive(rng, shape.size, correlation), AHEAD_S).answer(1.0)
        for _ in range(DRAWS)
    ]
    return answers.count(wanted) / DRAWS


@pytest.mark.parametrize("count", [12, 20, 67, 160])
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0])
def test_stationary_noise_is_seldom_called_a_drift(count, correlation, noise):
    rng = np.random.default_rng([count, round(10 * correlation), round(10 * noise)])
    allowed = 0.12 if correlation > 0 and count <= 20 else 0.04  # so few cannot tell slow noise from a slope
    spare = 3 * math.sqrt(allowed / DRAWS)
    assert share(rng, np.zeros(count), noise, correlation, Answer.DRIFTING) <= allowed + spare


def test_even_slow_noise_is_seldom_called_a_drift_where_there_is_enough_of_it():
    rng = np.random.default_rng(9)
    assert share(rng, np.zeros(160), 1.0, 0.9, Answer.DRIFTING) <= 0.06


@pytest.mark.parametrize("tau_s", [3.0, 5.0, 10.0, 20.0, 60.0])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_an_exponential_whose_rest_matters_is_seen(tau_s, correlation):
    """What is still to come within the run is 3 %: an amplitude chosen for each time constant."""
    rng = np.random.default_rng(round(tau_s))
    time_s = places(67)
    end_s = float(time_s[-1])
    amplitude = 3.0 / (math.exp(-end_s / tau_s) * (1 - math.exp(-AHEAD_S / tau_s)))
    shape = -amplitude * np.exp(-time_s / tau_s)
    assert share(rng, shape, 0.5, correlation, Answer.DRIFTING) > 0.95
    assert share(rng, shape, 0.5, correlation, Answer.STEADY) == 0


@pytest.mark.parametrize("tau_s", [1.0, 5.0, 20.0, 200.0])
@pytest.mark.parametrize("sign", [-1, 1])
def test_without_noise_an_exponential_is_drifting_until_it_does_not_matter(tau_s, sign):
    """Its bend is no noise: judged as it grows longer, it is drifting first, and steady in the end."""
    answers = []
    for end_s in np.geomspace(0.4 * tau_s, 40 * tau_s, 40):
        time_s = np.linspace(end_s / 2, end_s, 60)
        answers.append(drift(time_s, 100 + sign * 40 * np.exp(-time_s / tau_s), tau_s).answer(1.0))
    assert answers[-1] is Answer.STEADY
    first, last = answers.index(Answer.STEADY), len(answers) - answers[::-1].index(Answer.DRIFTING)
    assert set(answers[first:]) == {Answer.STEADY}
    assert set(answers[last:first]) <= {Answer.UNDECIDED}
    assert first - last <= 2
    rest = 40 * np.exp(-np.geomspace(0.4 * tau_s, 40 * tau_s, 40)[first] / tau_s) * (1 - math.exp(-1))
    assert rest < 1.0


@pytest.mark.parametrize(("percent", "answer"), [(3.0, Answer.DRIFTING), (-3.0, Answer.DRIFTING), (0.2, Answer.STEADY)])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_a_ramp_is_seen_where_it_matters_and_let_pass_where_it_does_not(percent, answer, correlation):
    rng = np.random.default_rng(4)
    assert share(rng, percent * places(67) / AHEAD_S, 0.2, correlation, answer) > 0.9


def test_noise_that_hides_what_matters_leaves_it_undecided():
    rng = np.random.default_rng(5)
    assert share(rng, np.zeros(20), 5.0, 0.3, Answer.UNDECIDED) > 0.9


@given(slope=st.floats(-50, 50), level=st.floats(-1e4, 1e4), count=st.integers(LEAST_VALUES, 60))
def test_a_line_drifts_by_its_slope(slope, level, count):
    time_s = places(count)
    found = drift(time_s, level + slope * time_s, AHEAD_S)
    assert found.value == pytest.approx(slope * AHEAD_S, abs=1e-6 * (1 + abs(slope) + abs(level)))
    assert found.half_width < 1e-6 * (1 + abs(slope) + abs(level))


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=LEAST_VALUES, max_size=40),
    offset=st.floats(-1e3, 1e3),
    factor=st.floats(0.01, 100),
)
def test_the_answer_does_not_depend_on_unit_or_origin(values, offset, factor):
    time_s = places(len(values))
    one = drift(time_s, np.array(values), AHEAD_S)
    other = drift(time_s + offset, np.array(values) * factor, AHEAD_S)
    assert other.value == pytest.approx(one.value * factor, rel=1e-6, abs=1e-6)
    assert other.half_width == pytest.approx(one.half_width * factor, rel=1e-4, abs=1e-4)


@given(values=st.lists(st.floats(-1e3, 1e3), max_size=LEAST_VALUES - 1), limit=st.floats(0.1, 1e6))
def test_too_few_values_decide_nothing(values, limit):
    assert drift(places(len(values)), np.array(values), AHEAD_S).answer(limit) is Answer.UNDECIDED


def test_a_sensor_that_says_the_same_all_the_time_is_steady():
    assert drift(places(20), np.full(20, 47.0), AHEAD_S).answer(1.0) is Answer.STEADY


def test_an_exclaimed_outlier_does_not_make_a_drift():
    values = np.full(40, 10.0) + np.random.default_rng(0).normal(scale=0.01, size=40)
    values[35] = 20.0
    assert drift(places(40), values, AHEAD_S).answer(0.1) is Answer.UNDECIDED
