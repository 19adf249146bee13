"""What may follow which words of the command line, read from its parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.boards.registry import BOARDS
from powerlab.domain.metric_names import short_metric_names
from powerlab.domain.preflight import ENGINES
from powerlab.domain.sweep import SEARCH_GOALS
from powerlab.domain.training import OPTIMIZERS
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.zoo import ZOO

Word = tuple[str, str]
"""A word and its description."""

FILES = "@files"
STORED = ("@sweeps", "@runs", "@baselines")
"""Marks of words that the shell looks up when it completes: files, and identifiers and names of what is stored."""


@dataclass(frozen=True, slots=True)
class Place:
    """A command or an action.

    Attributes:
        options: its options.
        arguments: what it takes besides: actions, names, or marks.
        values: what each option with a value takes.
    """

    options: tuple[Word, ...]
    arguments: tuple[Word, ...]
    values: Mapping[str, tuple[Word, ...]] = field(default_factory=dict)


def places(parser: argparse.ArgumentParser) -> dict[str, Place]:
    """Return every command with its actions, by the words that lead to it, such as ``powerlab runs list``."""
    return dict(_places(parser))


def _places(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Place]]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    arguments = tuple(word for action in shown if not action.option_strings for word in _words_of(action))
    options = tuple(
        (option, _first_line(action.help)) for action in shown for option in action.option_strings if option != "-h"
    )
    values = {option: _words_of(action) for action in shown if action.nargs != 0 for option in action.option_strings}
    yield parser.prog, Place(options, tuple(dict.fromkeys(arguments)), values)
    for action in shown:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _places(child)


def _words_of(action: argparse.Action) -> tuple[Word, ...]:
    if isinstance(action, argparse._SubParsersAction):
        return tuple((line.dest, _first_line(line.help)) for line in action._choices_actions)
    if action.choices is not None:
        return _plain(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    kinds = {option.removeprefix("--").upper() for option in action.option_strings} | set(metavar.split("|"))
    return tuple(word for kind, words in _KINDS.items() if kind in kinds for word in words)


def _plain(names: Iterable[str]) -> tuple[Word, ...]:
    return tuple((name, "") for name in names)


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0].replace("%%", "%")


_SWEEPS, _FILES = ((STORED[0], ""), (FILES, "")), ((FILES, ""),)
_KINDS: Mapping[str, tuple[Word, ...]] = {
    "BASELINE": ((STORED[2], ""),),
    "SWEEP": _SWEEPS,
    "SET": _SWEEPS,
    "RUN": ((STORED[1], ""),),
    "MODEL": (*_plain(sorted(ZOO)), (FILES, "")),
    "BOARD": _plain(BOARDS),
    "ENGINE": _plain(ENGINES),
    "PROCESSOR": _plain(Processor),
    "GOAL": _plain(SEARCH_GOALS),
    "OPTIMIZER": _plain(OPTIMIZERS),
    "METRIC": _plain(short_metric_names()),
    "DIMENSION": _plain(one.title for one in DIMENSIONS if " " not in one.title),
    **dict.fromkeys(("FILE", "FILE.npz", "DIR", "PATH_OR_URL"), _FILES),
}
"""What is offered for an argument or an option by its metavar or its name."""
