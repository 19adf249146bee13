"""Traces as curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import POWER_QUANTITIES, Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab_dashboards.charts.series import Curve, mean_power_w, rail_curve, thin, total_curve


def trace(quantity: RailQuantity, time_ns: list[int], value: list[float], name: str = "a") -> Trace:
    rail = Rail(
        source="s", name=name, quantity=quantity, resolution=0.001, relative_error=0.01, update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )  # fmt: skip
    return Trace(rail=rail, time_ns=np.array(time_ns, dtype=np.int64), value=np.array(value, dtype=np.float64))


def curve(name: str, time_s: list[float], power_w: list[float], *, differenced: bool = False) -> Curve:
    return Curve(name=name, time_s=np.array(time_s), power_w=np.array(power_w), differenced=differenced)


def test_a_power_rail_is_drawn_as_it_was_sampled() -> None:
    found = rail_curve(trace(RailQuantity.POWER, [0, 10**9, 2 * 10**9], [1.0, 2.0, 3.0]), origin_ns=10**9)
    assert found is not None
    assert found.time_s.tolist() == [-1.0, 0.0, 1.0]
    assert found.power_w.tolist() == [1.0, 2.0, 3.0]
    assert not found.differenced


def test_a_counter_is_drawn_as_its_slope() -> None:
    found = rail_curve(trace(RailQuantity.ENERGY, [0, 10**9, 3 * 10**9], [5.0, 7.0, 13.0]), origin_ns=0)
    assert found is not None
    assert found.power_w.tolist() == [2.0, 3.0]
    assert found.time_s.tolist() == [1.0, 3.0]
    assert found.differenced


def test_a_counter_that_stands_still_between_steps_has_no_spikes() -> None:
    tenth = 10**8
    value = [0.0, 0.0, 0.4, 0.4, 0.8, 0.8, 1.2]
    found = rail_curve(trace(RailQuantity.ENERGY, [i * tenth for i in range(7)], value), origin_ns=0)
    assert found is not None
    assert found.power_w[1:].tolist() == pytest.approx([2.0, 2.0])


@given(st.lists(st.floats(min_value=0.001, max_value=100), min_size=1, max_size=60))
def test_the_slopes_hold_all_the_energy_that_was_counted(steps: list[float]) -> None:
    value = np.concatenate([[0.0], np.cumsum(steps)])
    time_ns = [index * 10_000_000 for index in range(len(value))]
    found = rail_curve(trace(RailQuantity.ENERGY, time_ns, value.tolist()), origin_ns=0)
    assert found is not None
    lengths = np.diff(np.concatenate([[0.0], found.time_s]))
    assert float(np.sum(found.power_w * lengths)) == pytest.approx(float(value[-1]), rel=1e-6)


@pytest.mark.parametrize("quantity", POWER_QUANTITIES)
def test_a_trace_without_samples_gives_no_curve(quantity: RailQuantity) -> None:
    assert rail_curve(trace(quantity, [], []), origin_ns=0) is None


def test_a_counter_that_never_moved_gives_no_curve_rather_than_zero_watts() -> None:
    assert rail_curve(trace(RailQuantity.ENERGY, [0, 1000, 2000], [5.0, 5.0, 5.0]), origin_ns=0) is None


def test_the_total_adds_rails_at_the_same_moment() -> None:
    total = total_curve(
        ("a", "b"), [curve("a", [0.0, 1.0, 2.0], [1.0, 1.0, 1.0]), curve("b", [0.5, 1.5, 2.5], [0.0, 2.0, 4.0])]
    )
    assert total is not None
    assert total.time_s.tolist() == [1.0, 2.0]
    assert total.power_w.tolist() == [2.0, 4.0]


def test_a_counter_in_a_total_holds_its_slope_until_its_next_step() -> None:
    total = total_curve(
        ("a", "b"),
        [curve("a", [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]), curve("b", [0.5, 2.0], [1.0, 3.0], differenced=True)],
    )
    assert total is not None
    assert total.power_w.tolist() == [3.0, 3.0]


def test_a_total_with_a_rail_missing_is_not_drawn() -> None:
    assert total_curve(("a", "b"), [curve("a", [0.0], [1.0])]) is None
    assert total_curve((), [curve("a", [0.0], [1.0])]) is None


def test_a_total_of_rails_that_never_overlap_is_not_drawn() -> None:
    assert total_curve(("a", "b"), [curve("a", [0.0, 1.0], [1.0, 1.0]), curve("b", [5.0, 6.0], [1.0, 1.0])]) is None


@given(st.integers(min_value=0, max_value=9999))
def test_thinning_keeps_the_highest_peak_and_the_lowest_dip(peak: int) -> None:
    power = np.full(10_000, 5.0)
    power[peak] = 50.0
    power[(peak + 3000) % 10_000] = 0.5
    thinned = thin(Curve(name="a", time_s=np.arange(10_000.0), power_w=power, differenced=False), 200)
    assert len(thinned.time_s) <= 200
    assert thinned.power_w.max() == 50.0
    assert thinned.power_w.min() == 0.5
    assert (np.diff(thinned.time_s) > 0).all()


def test_a_short_curve_is_not_thinned() -> None:
    short = curve("a", [0.0, 1.0], [1.0, 2.0])
    assert thin(short, 2000) is short


def test_the_mean_of_a_counter_is_its_difference_over_the_time() -> None:
    rail = trace(RailQuantity.ENERGY, [0, 10**9, 2 * 10**9, 3 * 10**9], [0.0, 1.0, 4.0, 100.0])
    assert mean_power_w(rail, (10**9, 2 * 10**9)) == pytest.approx(3.0)


def test_the_mean_of_a_power_rail_weighs_its_samples_by_time() -> None:
    rail = trace(RailQuantity.POWER, [0, 10**9, 3 * 10**9], [2.0, 2.0, 6.0])
    assert mean_power_w(rail, (0, 3 * 10**9)) == pytest.approx((2.0 + 8.0) / 3)


def test_too_few_samples_have_no_mean() -> None:
    assert mean_power_w(trace(RailQuantity.POWER, [5], [2.0]), (0, 10)) is None
