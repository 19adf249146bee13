"""Lists of counts: ``--threads 1-4`` and the like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.cli import main
from powerlab.domain.counts import MOST, counts
from powerlab.domain.errors import PowerlabError

ENDS = st.tuples(st.integers(1, 10**6), st.integers(0, 90))
LISTS = st.lists(ENDS, min_size=1, max_size=8)


def text_of(ends: list[tuple[int, int]], blank: str) -> str:
    parts = (f"{first}" if more == 0 else f"{first}{blank}-{blank}{first + more}" for first, more in ends)
    return f"{blank},{blank}".join(parts)


@given(LISTS, st.sampled_from(["", " "]))
def test_a_list_is_its_numbers_and_its_ranges_with_both_ends(ends: list[tuple[int, int]], blank: str) -> None:
    wanted = [number for first, more in ends for number in range(first, first + more + 1)]
    assert list(counts("--threads", text_of(ends, blank))) == wanted


@given(st.integers(1, 10**8), st.integers(1, 10**8))
def test_a_range_that_counts_down_is_turned_round_in_the_message(first: int, less: int) -> None:
    with pytest.raises(PowerlabError, match=f"a range counts up; write {first}-{first + less}"):
        counts("--threads", f"{first + less}-{first}")


@given(st.integers(1, 10**6), st.integers(MOST, 10**8))
def test_a_huge_range_is_refused_at_once(first: int, more: int) -> None:
    with pytest.raises(PowerlabError, match=f"at most {MOST} values"):
        counts("--batch", f"{first}-{first + more}")


@given(st.text())
def test_any_other_text_gives_counts_or_one_sentence(text: str) -> None:
    try:
        found = counts("--threads", text)
    except PowerlabError as error:
        assert str(error).startswith("invalid --threads ")  # noqa: PT017 - either of two outcomes is right
    else:
        assert found
        assert all(number >= 1 for number in found)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--threads", "4-1"], "invalid --threads value '4-1': a range counts up; write 1-4."),
        (["--threads", "0-2"], "invalid --threads value '0-2': give at least 1."),
        (["--threads", "1,two"], "invalid --threads value 'two': give an integer from 1 on"),
        (["--threads", "-3"], "invalid --threads value '-3'"),
        (["--threads", "1-"], "invalid --threads value '1-'"),
        (["--threads", ","], "invalid --threads ',': give numbers and ranges, such as 1,2,4-8."),
        (["--batch", "1-9999999"], "invalid --batch '1-9999999': a list has at most 1000 values"),
        (["--batch", "1-4,2"], "2 stands twice among the batch sizes"),
        (["--slices", "1.5"], "invalid --slices value '1.5'"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused_in_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", "resnet50", "--board", "laptop", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
