from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io import frequency_range
from powerlab.modes.io.files import write_value
from powerlab.modes.io.frequency_range import FrequencyRange, read_range, write_range
from powerlab.sysroot import Sysroot

RANGES = st.tuples(st.integers(0, 3_000_000), st.integers(0, 3_000_000)).map(
    lambda ends: FrequencyRange(min(ends), max(ends))
)


@given(RANGES)
def test_the_text_of_a_range_reads_back(limits: FrequencyRange) -> None:
    assert FrequencyRange.parse(str(limits)) == limits


@pytest.mark.parametrize("text", ["", "5", "9-3", "a-b", "1-", "-1-5", "1 2"])
def test_other_texts_are_refused_in_words(text: str) -> None:
    with pytest.raises(PowerlabError, match="not a frequency range"):
        FrequencyRange.parse(text)


@given(RANGES, RANGES)
def test_the_lower_limit_is_never_above_the_upper_one_on_the_way(
    before: FrequencyRange, wanted: FrequencyRange
) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        sysroot = Sysroot(Path(directory))
        for name, value in (("low", before.low), ("high", before.high)):
            (Path(directory) / name).write_text(f"{value:07d}\n")

        def as_a_driver(root: Sysroot, path: str, value: str) -> None:
            write_value(root, path, f"{int(value):07d}")
            read_range(root, "/low", "/high")  # raises ValueError where a driver says EINVAL

        patch.setattr(frequency_range, "write_value", as_a_driver)
        write_range(sysroot, "/low", "/high", wanted)
        assert read_range(sysroot, "/low", "/high") == wanted
