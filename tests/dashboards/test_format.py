"""Numbers as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.format import (
    clock,
    count,
    decimals_for,
    fixed,
    model_label,
    moment,
    shown,
    significant,
    uniform_provenance,
)


def metric(value: float, low: float | None = None, high: float | None = None) -> Metric:
    return Metric(name="power_w", value=value, low=low, high=high, provenance=Provenance.MEASURED)


@pytest.mark.parametrize(
    ("value", "half", "expected"),
    [
        (12.3456, 0.05, "12.346 ±0.050 W"),
        (12.3456, 0.12, "12.35 ±0.12 W"),
        (12.3456, 0.3, "12.35 ±0.30 W"),
        (12.04, 8.2, "12.0 ±8.2 W"),
        (1234.5, 23.0, "1234 ±23 W"),
        (0.00123, 0.00004, "0.001230 ±0.000040 W"),
        (-0.5, 0.2, "−0.50 ±0.20 W"),
    ],
)
def test_a_value_has_as_many_digits_as_its_interval_supports(value: float, half: float, expected: str) -> None:
    assert shown(metric(value, value - half, value + half)).sentence == expected


def test_a_lopsided_interval_shows_both_sides() -> None:
    text = shown(metric(10.0, 9.5, 12.0))
    assert (text.spread, text.interval) == ("+2.0 −0.5", "95 % interval 9.5 to 12.0")


def test_an_interval_with_one_side_only_keeps_the_other_at_zero() -> None:
    assert shown(metric(10.0, 10.0, 12.0)).spread == "+2.0 −0.0"


def test_without_an_interval_nothing_is_claimed() -> None:
    text = shown(metric(12.3456))
    assert (text.value, text.spread, text.interval) == ("12.3", "", "no interval")


def test_the_unit_and_the_provenance_travel_with_the_value() -> None:
    text = shown(Metric(name="efficiency_img_per_s_per_w", value=2.0, provenance=Provenance.ESTIMATED))
    assert (text.unit, text.provenance) == ("img/s/W", "estimated")


@given(
    st.floats(min_value=1e-4, max_value=1e6, allow_nan=False),
    st.floats(min_value=1e-5, max_value=1e3, allow_nan=False),
)
def test_rounding_never_hides_more_than_half_the_interval(value: float, half: float) -> None:
    decimals = decimals_for(half, value)
    error = abs(float(fixed(value, decimals)) - value)
    assert error <= 0.5 * half * 1.0001 or (decimals == 0 and error <= 0.5)


@given(st.floats(min_value=-1e9, max_value=1e9, allow_nan=False))
def test_significant_digits_keep_the_value_within_half_a_percent(value: float) -> None:
    text = significant(value).replace("−", "-")
    assert "e" not in text
    assert math.isclose(float(text), value, rel_tol=0.0051, abs_tol=1e-11)


@given(st.floats(min_value=-1e-9, max_value=0))
def test_a_rounded_zero_has_no_sign(value: float) -> None:
    assert fixed(value, 2) == "0.00"


@pytest.mark.parametrize("half", [0.0, -1.0, math.inf, math.nan])
def test_a_useless_half_width_falls_back_to_significant_digits(half: float) -> None:
    assert decimals_for(half, 12.345) == 2


def test_moments_are_utc() -> None:
    assert moment("2026-11-21T11:30:00+02:00") == "2026-11-21 09:30 UTC"
    assert moment(datetime(2026, 11, 21, 9, 30, tzinfo=UTC)) == "2026-11-21 09:30 UTC"
    assert moment("2026-11-21T09:30:00") == "2026-11-21 09:30 UTC"
    assert moment("yesterday") == "yesterday"


def test_times_of_day_are_utc() -> None:
    assert clock("2026-11-21T11:30:05+02:00") == "09:30:05"
    assert clock("2026-11-21T09:30:05") == "09:30:05"
    assert clock("yesterday") == "yesterday"


def test_names_and_counts() -> None:
    assert model_label("resnet50") == "resnet50"
    assert model_label("/models/light_resnet50.onnx") == "light_resnet50.onnx"
    assert (count(1, "run"), count(0, "run"), count(3, "run")) == ("1 run", "0 runs", "3 runs")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "", "٢٠٢٦", "0" * 99])
def test_a_moment_that_utc_cannot_say_stays_as_it_is(text: str) -> None:
    assert moment(text) == clock(text) == text


@given(st.text())
def test_any_text_in_a_moments_place_is_shown(text: str) -> None:
    assert isinstance(moment(text), str)
    assert isinstance(clock(text), str)


@given(st.datetimes(timezones=st.timezones()))
def test_the_time_of_day_is_the_moments(when: datetime) -> None:
    text = when.isoformat()
    if moment(text) != text:
        assert moment(text).startswith(when.astimezone(UTC).strftime("%Y-%m-%d %H:%M"))
        assert clock(text) == when.astimezone(UTC).strftime("%H:%M:%S")


def test_the_provenance_of_a_column_is_said_once_where_it_is_uniform() -> None:
    def metric(provenance: Provenance) -> Metric:
        return Metric(name="power_w", value=1.0, low=None, high=None, provenance=provenance)

    measured, estimated = metric(Provenance.MEASURED), metric(Provenance.ESTIMATED)
    assert uniform_provenance([measured, None, measured]) == "measured"
    assert uniform_provenance([measured, estimated]) == ""
    assert uniform_provenance([None]) == ""
