from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.modes.mode_value import number_of, text_of, whole_of

KEYS = st.sampled_from(["cpu-max", "cores", "emc-max", "x"])
UNITS = st.sampled_from(["", "kHz", "Hz", "W"])


@given(KEYS, UNITS, st.integers(0, 10**15 - 1))
def test_a_whole_number_is_read_back(key: str, unit: str, value: int) -> None:
    assert whole_of(f"{key}={value}{unit}", key, unit) == value
    assert number_of(f"{key}={value}{unit}", key, unit) == value


@given(st.integers(0, 10**6), st.integers(0, 999_999))
def test_a_fraction_is_read_back(whole: int, fraction: int) -> None:
    text = f"{whole}.{fraction:06d}"
    assert number_of(f"package-limit={text}W", "package-limit", "W") == float(text)


@given(st.text(max_size=30), KEYS, UNITS)
def test_any_other_text_is_another_name_or_refused_in_words(text: str, key: str, unit: str) -> None:
    for name in (text, f"{key}={text}", f"{key}={text}{unit}"):
        for read in (whole_of, number_of):
            try:
                found = read(name, key, unit)
            except PowerlabError:
                assert name.startswith(f"{key}=")
            else:
                assert found is None or found >= 0


@pytest.mark.parametrize("text", ["1e3", "-4", "٣", "0x10", "1_000", " 4", "4 ", "4\n", "04", "4.", ".5", "inf", "nan"])
def test_spellings_that_only_python_takes_are_refused(text: str) -> None:
    for read in (whole_of, number_of):
        with pytest.raises(PowerlabError, match="states no number"):
            read(f"cores={text}", "cores", "")


def test_joined_names_and_other_names_are_left_to_others() -> None:
    assert text_of("governor=powersave", "governor") == "powersave"
    assert text_of("governor=powersave+cores=2", "governor") is None
    assert text_of("governor", "governor") is None
    assert text_of("governors=powersave", "governor") is None
    assert whole_of("cores=2+cpu-max=5kHz", "cores", "") is None
