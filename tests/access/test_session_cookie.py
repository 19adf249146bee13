"""A login as a cookie: nobody makes one, changes one, or uses one for too long."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from powerlab.access.session_cookie import fingerprint, seal, unseal

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
END = NOW + timedelta(hours=12)


@given(subject=st.text(max_size=40))
def test_what_was_sealed_comes_back_until_its_end(subject: str) -> None:
    cookie = seal(KEY, subject, END)
    assert unseal(KEY, cookie, NOW) == subject
    assert unseal(KEY, cookie, END - timedelta(seconds=1)) == subject
    assert unseal(KEY, cookie, END) is None


@given(subject=st.text(max_size=40))
def test_it_is_a_cookies_value(subject: str) -> None:
    """RFC 6265, 4.1.1: no blank, comma, semicolon, quote or backslash."""
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", seal(KEY, subject, END))


def test_another_database_has_another_key() -> None:
    assert unseal(OTHER_KEY, seal(KEY, "token 1", END), NOW) is None


@given(place=st.integers(0, 200), character=st.characters(codec="utf-8"))
def test_no_changed_character_is_let_through(place: int, character: str) -> None:
    cookie = seal(KEY, "token 1", END)
    place %= len(cookie)
    changed = cookie[:place] + character + cookie[place + 1 :]
    assert changed == cookie or unseal(KEY, changed, NOW) is None


@given(cookie=st.text(max_size=60))
@example(".")
@example("e30.e30")
@example("W10.")
def test_nonsense_is_nobody(cookie: str) -> None:
    assert unseal(KEY, cookie, NOW) is None


def test_a_secret_does_not_stand_in_its_fingerprint() -> None:
    assert fingerprint(KEY, "try-out") != fingerprint(KEY, "try-outs") != fingerprint(OTHER_KEY, "try-outs")
    assert "try-out" not in fingerprint(KEY, "try-out")
