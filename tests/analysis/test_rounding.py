"""The one rule of how many decimals are printed, and that both its users follow it."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.rounding import LOPSIDED, MOST_DECIMALS, interval_decimals, lopsided, significant_decimals
from powerlab.cli.output.sweep_table import format_figure
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.format import shown

VALUES = st.floats(1e-4, 1e9)
SHARES = st.floats(1e-4, 0.9)


def metric(value: float, below: float, above: float) -> Metric:
    return Metric(name="power_w", value=value, low=value - below, high=value + above, provenance=Provenance.MEASURED)


def significant_digits(text: str) -> int:
    return len(text.replace(".", "").replace("-", "").lstrip("0"))


@given(VALUES, st.integers(1, 8))
def test_a_value_keeps_just_the_digits_asked_for(value: float, digits: int) -> None:
    text = f"{value:.{significant_decimals(value, digits)}f}"
    assert float(text) == pytest.approx(value, rel=0.5000001 * 10.0 ** (1 - digits))
    if "." in text:
        assert significant_digits(text) == digits


@pytest.mark.parametrize(
    ("value", "text"), [(9.9996, "10.00"), (0.099996, "0.1000"), (999.96, "1000"), (9.9994, "9.999")]
)
def test_rounding_up_to_the_next_power_of_ten_adds_no_digit(value: float, text: str) -> None:
    assert f"{value:.{significant_decimals(value, 4)}f}" == text


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 1.7976931348623157e308])
def test_what_has_no_digits_after_the_point_gets_none(value: float) -> None:
    assert significant_decimals(value, 3) == 0


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 8))
def test_decimals_stay_within_bounds_and_signs_do_not_matter(value: float, digits: int) -> None:
    decimals = significant_decimals(value, digits)
    assert 0 <= decimals <= MOST_DECIMALS
    assert decimals == significant_decimals(-value, digits)


@given(VALUES)
def test_an_interval_keeps_two_digits(half_width: float) -> None:
    decimals = interval_decimals(half_width)
    assert decimals is not None
    text = f"{half_width:.{decimals}f}"
    assert significant_digits(text) == 2 or decimals == 0
    assert abs(float(text) - half_width) <= 0.05 * half_width * 1.0001 or decimals == 0


@pytest.mark.parametrize("half_width", [0.0, -1.0, math.inf, math.nan])
def test_no_interval_supports_no_digits(half_width: float) -> None:
    assert interval_decimals(half_width) is None


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_sides_are_lopsided_whichever_is_the_wider(one: float, other: float) -> None:
    assert lopsided(one, other) == lopsided(other, one) == (max(one, other) > LOPSIDED * min(one, other))
    assert not lopsided(one, one)


@given(VALUES, SHARES, SHARES)
def test_the_terminal_and_the_page_print_the_same_digits(value: float, below: float, above: float) -> None:
    figure = metric(value, below * value, above * value)
    terminal = re.findall(r"\d+(?:\.\d+)?", format_figure(figure))
    text = shown(figure)
    page = re.findall(r"\d+(?:\.\d+)?", f"{text.value} {text.spread}")
    assert terminal == page


@given(VALUES, SHARES, SHARES)
def test_the_page_names_the_ends_that_the_spread_leads_to(value: float, below: float, above: float) -> None:
    figure = metric(value, below * value, above * value)
    text = shown(figure)
    low, high = (float(end) for end in re.findall(r"\d+(?:\.\d+)?", text.interval.removeprefix("95 % interval")))
    step = 10.0 ** -len(text.value.partition(".")[2])
    assert low == pytest.approx(figure.low, abs=step / 2 + 1e-9 * value)
    assert high == pytest.approx(figure.high, abs=step / 2 + 1e-9 * value)
    assert low <= float(text.value) <= high
