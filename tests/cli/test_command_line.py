"""What the command line does with no words, with misspelt ones, and how its help is ordered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from powerlab import cli
from powerlab.cli import EXIT_CLOSED, GROUPS, main


def test_without_words_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return capsys.readouterr().out

    assert printed() == printed("--help")


def test_the_help_lists_every_command_under_its_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    titles = [index for index, words in enumerate(lines) if words in [[f"{title}:"] for title in GROUPS]]
    assert [lines[index][0] for index in titles] == [f"{title}:" for title in GROUPS]
    for start, (_, commands) in zip(titles, GROUPS.items(), strict=True):
        for command, words in commands.items():
            row = next(words for words in lines[start:] if words[0] == command)
            assert row[1] == words.split()[0]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["profil"], "there is no command 'profil' (did you mean profile?); `powerlab --help` shows"),
        (["quux"], "there is no command 'quux'; choose from: "),
        (["runs"], "ACTION is missing; choose from: list, show; `powerlab runs --help` shows"),
        (["runs", "lst"], "there is no action 'lst' (did you mean list?); choose from: list, show"),
        (
            ["runs", "list", "--verdit", "valid"],
            "there is no option --verdit (did you mean --verdict?); `powerlab runs",
        ),
        (["runs", "list", "--verdict=vald"], "argument --verdict: there is no choice 'vald' (did you mean valid?)"),
        (["runs", "list", "--qqq=1"], "there is no option --qqq; `powerlab runs list --help` shows"),
        (["runs", "list", "extra"], "'extra' is one word too many; `powerlab runs list --help` shows"),
        (["agent", "enrl"], "there is no action 'enrl' (did you mean enrol?)"),
        (["compare", "x", "--metric", "throuhgput"], "(did you mean throughput?)"),
        (["boards", "simulate", "jetson-agx-xavir", "x"], "(did you mean jetson-agx-xavier?)"),
        (["profile", "resnet50", "--board", "laptopp"], "(did you mean laptop?)"),
        (["profile", "resnet5o", "--board", "laptop"], "(did you mean resnet50?)"),
        (["profile", "resnet50", "--engine", "builtn", "--board", "laptop"], "(did you mean builtin?)"),
        (["profile", "resnet50", "--modes", "curent", "--board", "laptop"], "(did you mean current?)"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion_in_one_sentence(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == cli.EXIT_USAGE
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_misspelt_model_leaves_no_empty_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    assert main(["profile", "resnet5o", "--board", "laptop"]) == cli.EXIT_USAGE
    assert not [*tmp_path.glob("*.db"), *tmp_path.glob("sweeps/*")]
    assert "(did you mean resnet50?)" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["engine", "info", "squeezenet"], ["engine", "backends"], ["engine", "operators"]])
def test_a_reader_that_closes_the_pipe_ends_a_command_without_a_word(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "powerlab.cli", *words], stdout=closed, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (EXIT_CLOSED, b"")
