"""What the command line says where an argument is not a number."""

from __future__ import annotations

import pytest

from powerlab.cli import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["doctor", "--watch", "soon"], "argument --watch: 'soon' is not a time above 0 and up to 3600 s"),
        (["doctor", "--watch", "0"], "'0' is not a time above 0"),
        (["doctor", "--watch", "nan"], "'nan' is not a time above 0"),
        (["tegrastats", "run.log", "--interval-ms", "x"], "'x' is not a time above 0 and up to 3600000 ms"),
        (["boards", "simulate", "laptop", "x", "--jetpack", "five"], "argument --jetpack: 'five' is not an integer"),
        (["demo", "--seconds", "many"], "argument --seconds: 'many' is not a number"),
    ],
)
def test_what_is_no_number_is_said_without_words_of_the_program(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "--help` shows how it is called." in error
    assert "invalid" not in error


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["best", "x", "--p99", "-3ms"], "invalid p99 '-3ms': it must be above 0, such as 30ms."),
        (["best", "x", "--power", "-.5W"], "invalid power '-.5W': it must be above 0"),
        (["gate", "x", "--max-loss", "-2%"], "--max-loss -2% is no loss in per cent"),
    ],
)
def test_a_bound_below_zero_is_a_value_and_no_option(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("words", [["boards"], ["boards", "fault", "BOARD"]])
def test_a_table_has_no_blanks_at_the_ends_of_lines(
    words: list[str], tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    board = f"{tmp_path}/board"
    assert main(["boards", "simulate", "laptop", board]) == 0
    capsys.readouterr()
    assert main([board if word == "BOARD" else word for word in words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []
