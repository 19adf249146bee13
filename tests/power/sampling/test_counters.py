"""Unwrapping counters and finding their real period."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.power.sampling.counters import observed_update_period_s, rising, unwrap

RAIL = Rail(
    source="s",
    name="r",
    quantity=RailQuantity.ENERGY,
    resolution=0.0,
    relative_error=0.0,
    update_period_s=0.0,
    provenance=Provenance.MEASURED,
)


@given(st.data(), st.integers(2, 2**40), st.integers(1, 200))
def test_energy_of_any_walk_with_wraps_is_the_truth(data: st.DataObject, wraps_at: int, count: int) -> None:
    start = data.draw(st.integers(0, wraps_at - 1))
    widest = data.draw(st.integers(0, wraps_at // 2))
    steps = data.draw(st.lists(st.integers(widest // 50, widest), min_size=count, max_size=count))
    truth = start + np.concatenate([[0], np.cumsum(steps)])
    unwrapped, cut = unwrap(truth % wraps_at, wraps_at)
    assert cut == 0
    np.testing.assert_array_equal(unwrapped, truth)


@given(st.lists(st.integers(0, 2**50), max_size=50), st.none() | st.integers(1, 2**50))
def test_any_readings_give_a_counter_that_never_decreases(readings: list[int], wraps_at: int | None) -> None:
    raw = np.array(readings, dtype=np.int64)
    unwrapped, cut = unwrap(raw, wraps_at)
    assert len(unwrapped) + cut == len(raw)
    assert (np.diff(unwrapped) >= 0).all()
    np.testing.assert_array_equal(unwrapped[:1], raw[:1])


def test_a_counter_set_back_ends_where_its_range_is_unknown() -> None:
    unwrapped, cut = unwrap(np.array([5, 7, 9, 1, 2]), None)
    assert unwrapped.tolist() == [5, 7, 9]
    assert cut == 2


def test_a_counter_set_back_by_a_suspension_is_no_wrap_of_hundreds_of_kilojoules() -> None:
    unwrapped, cut = unwrap(np.array([100, 110, 3, 9]), 1000)
    assert unwrapped.tolist() == [100, 110]
    assert cut == 2


def test_a_wrap_and_a_later_set_back_are_told_apart() -> None:
    unwrapped, cut = unwrap(np.array([990, 998, 4, 500, 2]), 1000)
    assert unwrapped.tolist() == [990, 998, 1004, 1500]
    assert cut == 1


def test_a_counter_set_back_from_the_upper_half_of_its_range_is_no_wrap_either() -> None:
    """From 99 % to 0 would be a wrap by 1 %; but no step before it or after it was wider than 1."""
    raw = np.concatenate([np.arange(99_000_000, 99_000_021), np.arange(20)])
    unwrapped, cut = unwrap(raw, 100_000_000)
    assert (unwrapped.max(), cut) == (99_000_020, 20)


def test_a_wide_step_over_a_long_time_is_a_wrap() -> None:
    raw = np.concatenate([np.arange(99_000, 99_021), [500, 501, 502]])
    time_ns = np.arange(len(raw), dtype=np.int64) * 1_000_000
    assert unwrap(raw, 100_000, time_ns)[1] == 3
    time_ns[21:] += 1_500_000_000
    unwrapped, cut = unwrap(raw, 100_000, time_ns)
    assert (unwrapped[-1], cut) == (100_502, 0)


@given(st.data(), st.integers(1, 1000), st.integers(12, 60))
def test_set_back_anywhere_it_counts_at_most_a_hundred_of_its_own_steps_too_much(
    data: st.DataObject, step: int, count: int
) -> None:
    wraps_at = 10**9
    start = data.draw(st.integers(0, wraps_at - step * count))
    raw = start + step * np.arange(count)
    back = data.draw(st.integers(1, count - 1))
    raw[back:] = step * np.arange(count - back)
    unwrapped, _ = unwrap(raw, wraps_at, np.arange(count, dtype=np.int64) * 1000)
    assert unwrapped[-1] - unwrapped[0] <= step * count + 100 * step


def test_a_counter_without_an_end_drops_one_low_reading_and_ends_at_two() -> None:
    assert rising(np.array([5.0, 6.0, 4.0, 7.0])).tolist() == [True, True, False, True]
    assert rising(np.array([5.0, 6.0, 1.0, 2.0, 8.0])).tolist() == [True, True, False, False, False]
    assert rising(np.array([])).tolist() == []
    assert rising(np.array([5.0, 5.0])).all()


@given(st.lists(st.floats(0, 1e9), max_size=40))
def test_what_is_kept_of_a_counter_without_an_end_never_falls(readings: list[float]) -> None:
    value = np.array(readings)
    kept = value[rising(value)]
    assert (np.diff(kept) >= 0).all()
    np.testing.assert_array_equal(kept[:1], value[:1])


def test_unwrapping_leaves_its_input_alone() -> None:
    raw = np.array([5, 1, 3])
    unwrap(raw, 6)
    assert raw.tolist() == [5, 1, 3]


@pytest.mark.parametrize("held", [2, 5, 20])
def test_period_is_that_of_the_value_and_not_of_the_sampling(held: int) -> None:
    count = 40 * held
    trace = Trace(
        rail=RAIL, time_ns=np.arange(count, dtype=np.int64) * 1_000_000, value=np.repeat(np.arange(40.0), held)
    )
    assert observed_update_period_s(trace) == pytest.approx(held * 1e-3)


def test_no_period_of_a_value_that_stands_still() -> None:
    trace = Trace(rail=RAIL, time_ns=np.arange(9, dtype=np.int64), value=np.ones(9))
    assert observed_update_period_s(trace) is None
    empty = Trace(rail=RAIL, time_ns=np.array([], dtype=np.int64), value=np.array([]))
    assert observed_update_period_s(empty) is None


@given(st.integers(5, 40), st.integers(0, 2**32))
def test_a_coarse_step_that_repeats_values_hides_no_period(period_ms: int, seed: int) -> None:
    """Noise of half a step gives every second value again, or more: the changes lie several periods apart."""
    noise = np.random.default_rng(seed)
    readings = np.round(noise.normal(10.0, 0.5, 400))
    count = 400 * period_ms
    trace = Trace(rail=RAIL, time_ns=np.arange(count, dtype=np.int64) * 1_000_000, value=np.repeat(readings, period_ms))
    assert observed_update_period_s(trace) == pytest.approx(period_ms * 1e-3)


def test_changes_at_chance_times_are_no_period() -> None:
    changed_at_ms = [0, 100, 400, 1500]
    trace = Trace(rail=RAIL, time_ns=np.array(changed_at_ms, dtype=np.int64) * 1_000_000, value=np.arange(4.0))
    assert observed_update_period_s(trace) is None


@given(st.integers(2, 2**40), st.data())
def test_a_step_of_more_than_half_the_range_is_never_counted(wraps_at: int, data: st.DataObject) -> None:
    """Whatever is read, two neighbouring readings of a wrapped counter never lie further apart than they can."""
    readings = data.draw(st.lists(st.integers(0, wraps_at - 1), min_size=1, max_size=30))
    raw = np.array(readings, dtype=np.int64)
    unwrapped, cut = unwrap(raw, wraps_at)
    backwards = np.diff(raw[: len(raw) - cut]) < 0
    assert (np.diff(unwrapped)[backwards] <= wraps_at // 2).all()
