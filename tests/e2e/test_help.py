"""Every help can be read on a terminal of 100 columns, and everything said for machines is JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import pytest

from powerlab import cli


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and sub-command there is."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from commands(child, (*words, name))


EVERY = sorted(commands(cli.parser()))
WITH_EXAMPLES = [words for words in EVERY if len(words) < 2]


def test_there_are_commands():
    assert ("engine", "run") in EVERY
    assert len(EVERY) > 20


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help(shared_powerlab, words):
    done = shared_powerlab(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if len(line) > 100] == []
    usage, description, *_ = done.stdout.split("\n\n")
    assert usage.startswith(f"usage: {' '.join(['powerlab', *words])}")
    assert description.rstrip().endswith("."), "a sentence says what it does"
    assert "exit status:" in done.stdout
    assert ("examples:" in done.stdout) or words not in WITH_EXAMPLES


def test_help_is_no_wider_on_a_wide_terminal(shared_powerlab, monkeypatch):
    narrow = shared_powerlab("profile", "--help").stdout
    monkeypatch.setattr(type(shared_powerlab), "environment", shared_powerlab.environment | {"COLUMNS": "300"})
    assert shared_powerlab("profile", "--help").stdout == narrow


@pytest.mark.parametrize(
    "words",
    [
        "doctor",
        "doctor --board jetson-agx-xavier",
        "boards",
        "boards show jetson-agx-xavier",
        "modes",
        "modes restore",
        "engine info mobilenetv2",
        "engine operators",
    ],
)
def test_json_is_json(shared_powerlab, words):
    done = shared_powerlab(*words.split(), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    json.loads(done.stdout)
