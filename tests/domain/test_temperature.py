"""Limits of temperatures: the stricter wins, a run begins below where it would be ended, nothing read is not 0 °C."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.temperature import NO_LIMITS, START_MARGIN_C, Reading, TemperatureLimits, hottest

CELSIUS = st.floats(-40, 150).map(lambda value: round(value, 2))
LIMITS = st.builds(TemperatureLimits, max_c=st.none() | CELSIUS, start_below_c=st.none() | CELSIUS)


@given(LIMITS, LIMITS, LIMITS)
def test_the_stricter_of_limits_is_no_looser_than_any_of_them_whatever_their_order(one, two, three):
    both = one.stricter(two)
    assert both == two.stricter(one)
    assert both.stricter(three) == one.stricter(two.stricter(three))
    assert one.stricter(NO_LIMITS) == one.stricter(one) == one
    for of in (one, two):
        for name in ("max_c", "start_below_c"):
            wanted, found = getattr(of, name), getattr(both, name)
            assert wanted is None or (found is not None and found <= wanted)
    assert bool(both) == (bool(one) or bool(two))


@given(LIMITS)
def test_a_run_begins_below_where_it_would_be_ended(limits):
    begins = limits.begins_below_c
    assert (begins is None) == (not limits)
    if limits.max_c is not None:
        assert begins < limits.max_c
    if limits.start_below_c is not None:
        assert begins <= limits.start_below_c


def test_without_a_start_a_run_begins_well_below_the_limit():
    assert TemperatureLimits(max_c=90.0).begins_below_c == 90.0 - START_MARGIN_C
    assert TemperatureLimits(start_below_c=70.0).begins_below_c == 70.0
    assert TemperatureLimits(max_c=90.0, start_below_c=50.0).begins_below_c == 50.0
    # A plan that begins below 80 °C, on a device that its owner holds to 75 °C.
    assert TemperatureLimits(start_below_c=80.0).stricter(TemperatureLimits(max_c=75.0)).begins_below_c == 65.0


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (TemperatureLimits(max_c=math.nan), "the highest temperature is nan °C; give one from -40 to 150 °C, or none."),
        (TemperatureLimits(max_c=math.inf), "the highest temperature is inf °C; give one from -40 to 150 °C, or none."),
        (
            TemperatureLimits(start_below_c=-273.0),
            "the temperature to begin below is -273 °C; give one from -40 to 150 °C, or none.",
        ),
        (
            TemperatureLimits(max_c=80.0, start_below_c=80.0),
            "a run would begin below 80 °C and be ended above 80 °C; let it begin below less than that.",
        ),
    ],
)
def test_limits_that_mean_nothing_are_refused_in_a_sentence(limits, sentence):
    assert list(limits.complaints()) == [sentence]


@given(LIMITS)
def test_only_a_start_that_is_not_below_the_end_is_wrong_with_real_temperatures(limits):
    both = limits.max_c is not None and limits.start_below_c is not None
    assert len(list(limits.complaints())) == (both and limits.start_below_c >= limits.max_c)


def test_limits_say_what_they_are():
    assert str(NO_LIMITS) == "no limit"
    assert str(TemperatureLimits(max_c=85.5)) == "a run begins below 75.5 °C and is ended above 85.5 °C"
    assert str(TemperatureLimits(start_below_c=60.0)) == "a run begins below 60 °C"


@given(st.dictionaries(st.text(min_size=1, max_size=4), CELSIUS, max_size=5))
def test_the_hottest_of_zones_is_one_of_them_and_of_none_it_is_nothing(celsius):
    found = hottest(celsius)
    if not celsius:
        assert found is None
        return
    assert celsius[found.zone] == found.celsius == max(celsius.values())
    assert str(found) == str(Reading(found.zone, found.celsius)) == f"{found.zone} {found.celsius:.1f} °C"
