"""The grammar of a meter's lines."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from powerlab.power.sources.meter.line_protocol import parse_reading


@pytest.mark.parametrize(
    ("text", "power_w"),
    [
        ("12.34", 12.34),
        ("12.34 W", 12.34),
        ("  7W\r", 7.0),
        ("+1.5e1", 15.0),
        (".5", 0.5),
        ("0", 0.0),
        ("4761mW", 4.761),
        ("250 uW", 250e-6),
        ("250 µW", 250e-6),
        ("1.2 kW", 1200.0),
        ("P=12.34 W", 12.34),
        ("p = 12.34", 12.34),
        ("V=230.1 V, I=0.05 A, P=11.5 W", 11.5),
        ("V=230.1 I=0.05 P=11.5", 11.5),
        ("t=25.1°C;P=3;pf=98%", 3.0),
        ("P=1 P=2", 1.0),
    ],
)
def test_readings(text: str, power_w: float) -> None:
    assert parse_reading(text, "P") == {"wall": pytest.approx(power_w)}


def test_another_field_may_be_the_power() -> None:
    assert parse_reading("P=1, S=2, active_power=3.5 W", "Active_Power") == {"wall": 3.5}


@pytest.mark.parametrize("text", ["", "   ", "# 12.34", "#"])
def test_remarks_and_empty_lines_say_nothing(text: str) -> None:
    assert parse_reading(text, "P") == {}


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "-0.5 W",
        "12,34",
        "12.34 V",
        "12.34 W 5",
        "nan",
        "inf",
        "1e400",
        "V=230.1",
        "P=12.34 W and more",
        "P=",
        "P=-3 W",
        "P=5 A",
        "OL",
        "1 2 3",
        "0x10",
        "١٢",
    ],
)
def test_what_is_no_reading_is_never_guessed_at(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_reading(text, "P")


@given(st.text(), st.text(min_size=1))
@example("P=1e308 kW", "P")
@example("P=" + "9" * 400, "P")
def test_any_line_is_a_power_or_no_reading(text: str, field: str) -> None:
    for candidate in (text, f"P={text}", f"{text} W"):
        try:
            found = parse_reading(candidate, field)
        except ValueError:
            continue
        assert all(math.isfinite(power_w) and power_w >= 0 for power_w in found.values())


@given(st.floats(min_value=0, max_value=1e9, allow_subnormal=False), st.sampled_from(["", " W", "W"]))
def test_what_python_prints_is_read_back(power_w: float, unit: str) -> None:
    assert parse_reading(f"{power_w!r}{unit}", "P")["wall"] == pytest.approx(power_w)
    assert parse_reading(f"U=230 V, P={power_w!r}{unit}", "P")["wall"] == pytest.approx(power_w)
