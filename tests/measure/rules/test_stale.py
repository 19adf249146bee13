"""A sensor that stopped is found, and one that rightly repeats its value is left in peace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.run import Verdict
from powerlab.measure.rules.stale_sensor import stale_sensor
from powerlab.measure.validity import Evidence, judge

SECOND = 1_000_000_000
WINDOW = (1 * SECOND, 6 * SECOND)
LOAD_NS = SECOND // 2
time_s = np.arange(0, 7, 0.01)


def noisy(mean: float = 12.0) -> np.ndarray:
    return mean + np.random.default_rng(0).normal(0, 0.3, time_s.size).round(1)


@pytest.fixture
def evidence(make_trace, make_rail):
    """A recording with the load from 0.5 s on, and a window from 1 s to 6 s."""

    def make(*values: np.ndarray, lively: float = 0.0, quantity: RailQuantity = RailQuantity.POWER) -> Evidence:
        rails = [make_rail(f"R{index}", quantity=quantity) for index in range(len(values))]
        return Evidence(
            window_ns=WINDOW,
            inference_count=200,
            total=TotalFormula(rails=tuple(rail.key for rail in rails), scope="all"),
            traces=tuple(make_trace(time_s, value, rail) for value, rail in zip(values, rails, strict=True)),
            sample_period_s=0.01,
            load_ns=LOAD_NS,
            lively={rail.key: lively for rail in rails if lively},
        )

    return make


def said(evidence: Evidence) -> list[tuple[Verdict, str]]:
    return list(stale_sensor(evidence))


def test_readings_that_never_change_while_the_load_starts_are_void(evidence):
    ((verdict, detail),) = said(evidence(np.full(time_s.size, 12.0)))
    assert verdict is Verdict.VOID
    assert "R0" in detail
    assert "7.0 s" in detail


def test_it_is_one_of_the_rules_and_takes_the_watts_alone(evidence):
    findings = judge(evidence(np.full(time_s.size, 12.0)))
    assert [finding.rule for finding in findings] == ["stale-sensor"]


def test_a_coarse_step_may_repeat_its_value_as_long_as_the_load_lasts(evidence):
    assert said(evidence(np.where(time_s < 0.6, 8.0, 12.0))) == []


def test_one_rail_may_stand_still_beside_others_that_move(evidence):
    assert said(evidence(np.zeros(time_s.size), noisy())) == []


def test_all_rails_may_not(evidence):
    ((verdict, detail),) = said(evidence(np.zeros(time_s.size), np.full(time_s.size, 5.0)))
    assert verdict is Verdict.VOID
    assert "R0" in detail
    assert "R1" in detail


def test_without_a_load_that_starts_a_constant_value_proves_nothing(evidence):
    assert said(replace(evidence(np.full(time_s.size, 12.0)), load_ns=None)) == []


def test_readings_from_under_the_load_alone_prove_nothing(evidence):
    assert said(replace(evidence(np.full(time_s.size, 12.0)), load_ns=-1)) == []


def test_a_counter_that_stands_still_is_left_to_missing_power(evidence):
    still = evidence(np.full(time_s.size, 55.0), quantity=RailQuantity.ENERGY)
    assert said(still) == []
    assert [finding.rule for finding in judge(still)] == ["missing-power"]


@pytest.mark.parametrize(
    ("stopped_s", "verdict"), [(0.9, None), (1.5, Verdict.VOID), (4.0, Verdict.VOID), (5.9, Verdict.VOID)]
)
def test_a_lively_rail_that_stops_within_the_run_loses_that_share_of_the_window(evidence, stopped_s, verdict):
    values = noisy()
    values[(time_s >= 2.0) & (time_s < 2.0 + stopped_s)] = 12.0
    findings = said(evidence(values, lively=90.0))
    assert [found for found, _ in findings] == ([verdict] if verdict else [])
    for _, detail in findings:
        assert "90 times a second" in detail


def test_a_small_share_is_flagged(evidence):
    values = noisy()
    values[time_s < 1.25] = 12.0
    ((verdict, detail),) = said(replace(evidence(values, lively=90.0), load_ns=None))
    assert verdict is Verdict.FLAGGED
    assert "5%" in detail


def test_a_rail_that_is_not_known_to_be_lively_may_settle(evidence):
    values = noisy()
    values[time_s >= 2.0] = 12.0
    assert said(evidence(values)) == []


def test_few_changes_are_due_from_a_slow_sensor(evidence):
    values = noisy()
    values[time_s >= 2.0] = 12.0
    assert said(evidence(values, lively=2.0)) == []


def test_a_time_without_readings_is_a_gap_and_no_stale_value(evidence, make_trace, make_rail):
    rail = make_rail("R0")
    times = np.concatenate([np.arange(0, 2, 0.01), np.arange(5, 7, 0.01)])
    values = np.arange(times.size, dtype=np.float64)
    gap = replace(evidence(noisy(), lively=90.0), traces=(make_trace(times, values, rail),))
    assert said(gap) == []
    assert [finding.rule for finding in judge(gap)] == ["power-gap"]


def test_seldom_samples_are_no_stale_value(evidence, make_trace, make_rail):
    times = np.arange(0, 7, 1.0)
    seldom = make_trace(times, times, make_rail("R0"))
    assert said(replace(evidence(noisy(), lively=90.0), traces=(seldom,))) == []


def counter(stop_s: float, go_on_s: float) -> np.ndarray:
    true_j = time_s * 12.0
    return np.where((time_s >= stop_s) & (time_s < go_on_s), np.interp(stop_s, time_s, true_j), true_j)


def test_a_counter_may_rest_within_the_window_but_not_over_its_end(evidence):
    energy = RailQuantity.ENERGY
    assert said(evidence(counter(2.0, 4.0), lively=90.0, quantity=energy)) == []
    ((verdict, _),) = said(evidence(counter(4.5, 7.0), lively=90.0, quantity=energy))
    assert verdict is Verdict.VOID
    ((verdict, _),) = said(evidence(counter(0.2, 2.0), lively=90.0, quantity=energy))
    assert verdict is Verdict.VOID


@given(st.integers(0, 2**32), st.floats(0.3, 3.0))
def test_noise_wider_than_the_step_is_never_taken_for_a_stale_sensor(make_trace, make_rail, seed, spread):
    values = np.random.default_rng(seed).normal(12.0, spread, time_s.size).round(1)
    changes_per_s = np.count_nonzero(np.diff(values)) / 7.0
    rail = make_rail("R0")
    found = Evidence(
        window_ns=WINDOW,
        inference_count=200,
        total=TotalFormula(rails=(rail.key,), scope="all"),
        traces=(make_trace(time_s, values, rail),),
        sample_period_s=0.01,
        load_ns=LOAD_NS,
        lively={rail.key: changes_per_s},
    )
    assert said(found) == []
