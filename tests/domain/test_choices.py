"""The name that somebody meant who wrote another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.choices import meant

NAMES = ["MAXN", "MODE_15W", "cores=2", "jetson-nano"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("maxn", "MAXN"), ("MODE15W", "MODE_15W"), ("jetson-nan", "jetson-nano"), ("core=2", "cores=2")],
)
def test_a_slip_is_recognised(wrong: str, right: str) -> None:
    assert meant(wrong, NAMES) == f" (did you mean {right}?)"


def test_what_is_like_nothing_gets_no_advice() -> None:
    assert meant("warp", NAMES) == ""
    assert meant("", NAMES) == ""
    assert meant("MAXN", []) == ""


@given(st.text(), st.lists(st.text()))
def test_only_a_name_there_is_is_proposed(wrong: str, names: list[str]) -> None:
    said = meant(wrong, names)
    assert said == "" or any(said == f" (did you mean {name}?)" for name in names)
