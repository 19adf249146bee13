"""Labels are written one way and read one way."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Label, Selector, check_selector, parse_label

WORDS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", fullmatch=True)


@given(key=WORDS, value=WORDS | st.just(""))
def test_a_label_is_read_as_it_is_written(key: str, value: str) -> None:
    label = Label(key=key, value=value)
    assert parse_label(str(label)) == label


@given(text=st.text(max_size=80))
def test_any_text_is_a_label_or_refused(text: str) -> None:
    good = re.fullmatch(r"[\w.-]{1,63}(=[\w.-]{1,63})?", text, re.ASCII)
    with suppress(PowerlabError):
        assert str(parse_label(text)) == text
        assert good


@pytest.mark.parametrize("text", ["", "=", "=3", "rack=", "-rack", "rack.", "a b", "a=b=c", "ä", "x" * 64, "a\n"])
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(PowerlabError):
        check_selector(Selector(labels=("good=1", text)))


def test_a_selector_in_words() -> None:
    assert str(Selector()) == "every device"
    chosen = Selector(board="jetson-tx2", labels=("rack=3", "fan"), group="lab")
    assert str(chosen) == "board jetson-tx2, group lab, label rack=3, fan"
