"""The sweeps that a gate asks for find the loss that they are to find, and let no loss pass."""

from __future__ import annotations

import math
import random
from statistics import stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.analysis.gate.loss import loss
from powerlab.analysis.gate.needed import FOUND_ERROR, PASS_ERROR, sweeps_needed, upper_deviation
from tests.analysis.gate.test_loss import RATE, samples

WANTED = {"max_loss": 0.02, "found_loss": 0.03, "test_count": 3}


@pytest.mark.parametrize(
    ("degrees", "lower"),  # chi-squared's 20 % quantile, tabulated
    [(1, 0.0642), (4, 1.6488), (9, 5.3801), (30, 23.364)],
)
def test_the_scatters_upper_limit_is_chi_squareds(degrees, lower):
    assert upper_deviation(1.0, degrees) == pytest.approx(math.sqrt(degrees / lower), rel=0.08 if degrees < 4 else 0.01)


@settings(max_examples=25)
@given(st.floats(0.0005, 0.02), st.integers(1, 20), st.integers(1, 12))
def test_more_scatter_and_fewer_sweeps_known_ask_for_more(deviation, degrees, tests):
    def needed(**changes):
        found = sweeps_needed(
            RATE,
            **{"deviation": deviation, "degrees": degrees, "max_loss": 0.02, "found_loss": 0.03, "test_count": tests}
            | changes,
        )
        return math.inf if found is None else found

    base = needed()
    assert base >= 2
    assert needed(deviation=deviation * 1.5) >= base
    assert needed(degrees=degrees + 5) <= base
    assert needed(test_count=tests + 5) >= base
    assert needed(found_loss=0.05) <= base


def test_without_scatter_two_sweeps_are_enough_and_with_too_much_none_are():
    assert sweeps_needed(RATE, deviation=0.0, degrees=3, **WANTED) == 2
    assert sweeps_needed(RATE, deviation=0.5, degrees=3, **WANTED) is None


@pytest.mark.parametrize("deviation", [0.004, 0.01])
@pytest.mark.parametrize("pilot", [4, 8])
def test_a_planned_gate_finds_its_loss_and_lets_no_change_pass(deviation, pilot):
    chance, count, found, passed, false = random.Random(7), 300, 0, 0, 0
    for _ in range(count):
        seen = [chance.gauss(0, deviation) for _ in range(pilot)]
        needed = sweeps_needed(RATE, deviation=stdev(seen), degrees=pilot - 1, **WANTED)
        size = max(pilot, needed or 1000)
        before = [*seen, *(chance.gauss(0, deviation) for _ in range(size - pilot))]
        after = [chance.gauss(0, deviation) for _ in range(size)]
        none = loss(RATE, *(samples(*map(math.exp, side)) for side in (before, after)))
        three = loss(RATE, samples(*map(math.exp, before)), samples(*(0.97 * math.exp(value) for value in after)))
        level = FOUND_ERROR / WANTED["test_count"]
        found += three.level_above(0) <= level and three.part > 0.02
        false += none.level_above(0) <= level and none.part > 0.02
        passed += none.level_below(0.02) <= PASS_ERROR
    slack = 2.5 * math.sqrt(0.05 * 0.95 / count)
    assert found / count > 0.95 - slack
    assert passed / count > 0.95 - slack
    assert false / count < 0.01 + slack / 2
