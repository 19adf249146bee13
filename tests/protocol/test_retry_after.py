"""Retry-After in both of its forms, and in none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3 import HTTPHeaderDict

from powerlab.protocol.retry_after import retry_after_s

NOW = "Sun, 06 Nov 1994 08:49:37 GMT"


def said(after: str, date: str = NOW) -> float | None:
    return retry_after_s(HTTPHeaderDict({"retry-after": after, "date": date}))


@pytest.mark.parametrize(("after", "seconds"), [("0", 0.0), ("120", 120.0), (" 7 ", 7.0), ("315360000", 315360000.0)])
def test_seconds(after: str, seconds: float) -> None:
    assert said(after) == seconds


@pytest.mark.parametrize(
    "after", ["Sun, 06 Nov 1994 08:51:37 GMT", "Sunday, 06-Nov-94 08:51:37 GMT", "Sun Nov  6 08:51:37 1994"]
)
def test_a_date_is_held_against_the_answers_own(after: str) -> None:
    assert said(after) == 120.0


def test_a_date_in_an_answer_without_one_is_held_against_the_clock() -> None:
    then = datetime.now(UTC) + timedelta(seconds=100)
    assert 98 <= retry_after_s({"Retry-After": format_datetime(then, usegmt=True)}) <= 100


def test_a_date_that_has_passed_is_now() -> None:
    assert said("Sun, 06 Nov 1994 08:00:00 GMT") == 0.0


@pytest.mark.parametrize(
    "after", ["", "soon", "-1", "1.5", "1, 2", "²", "Sun, 99 Nov 1994 08:51:37 GMT", "Sun, 06 Nov 99999 08:51:37 GMT"]
)
def test_what_cannot_be_understood_says_nothing(after: str) -> None:
    assert said(after) is None


def test_an_answer_without_the_field() -> None:
    assert retry_after_s({}) is None


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ ([+-]\d+|GMT)"), st.text())
def test_whatever_it_says_no_answer_breaks_the_reader(after: str, date: str) -> None:
    seconds = retry_after_s({"Retry-After": after, "Date": date})
    assert seconds is None or seconds >= 0
