"""Sets of runs as the command line names them: ``SWEEP``, ``SWEEP:engine=ncnn``, ``device=xavier-3,mode=15W``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.sets import RunSet
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.source import RunChoice, SweepChoice, counted
from powerlab.cli.stored.sweeps import SweepRuns, find_sweeps
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run

GRAMMAR = """\
A SET is a sweep, or some runs of it (SWEEP:KEY=VALUE,KEY=VALUE), or all stored runs that fit (KEY=VALUE,...). A SWEEP
is an id or a unique prefix of one (see `powerlab sweep list`), a campaign, or a results file of `powerlab profile`. A
KEY is device, version (of powerlab), or a dimension: model, engine, precision, batch, threads, mode and so on.
"""
DEVICE, VERSION = "device", "version"
_SELECTION = re.compile(r"[a-z][a-z -]*=")
_COMMA = re.compile(r",(?=[a-z][a-z -]*=)")
"""A comma in front of another key; others belong to a value, such as a list of cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSet:
    """A set of runs, and by which dimensions of its points it was selected."""

    runs: RunSet
    selected: tuple[str, ...]


def key_names() -> tuple[str, ...]:
    """Return the keys that are dimensions, as they are written here."""
    return tuple(dimension.title.replace(" ", "-") for dimension in DIMENSIONS)


def has_selection(word: str) -> bool:
    """Say whether a word of the command line names some runs and not a whole sweep."""
    return bool(_split(word)[1])


def find_set(word: str, args: argparse.Namespace) -> NamedSet:
    """Return the runs that a word of the command line means.

    Raises:
        PowerlabError: there is no such sweep or key, or no run fits.
    """
    place, chosen = _split(word)
    wanted = dict(map(_pair, chosen))
    sweeps = _all_sweeps(args, wanted.get(DEVICE)) if wanted and not place else find_sweeps(place, args)
    found = [(sweep, run) for sweep in sweeps for run in sweep.runs if _fits(sweep, run, wanted)]
    if not found:
        raise PowerlabError(_nothing(word, sweeps, wanted))
    return NamedSet(
        runs=RunSet(
            label=word,
            runs=tuple(run for _, run in found),
            devices=frozenset((sweep.device, sweep.simulated) for sweep, _ in found),
        ),
        selected=tuple(key.replace("-", " ") for key in wanted if key not in {DEVICE, VERSION}),
    )


def _split(word: str) -> tuple[str, list[str]]:
    """Return the sweep that a word begins with, which may be empty, and its selections."""
    if Path(word).is_file():
        return word, []
    if _SELECTION.match(word):
        return "", _COMMA.split(word)
    for colon in re.finditer(":", word):
        if _SELECTION.match(word, colon.end()):
            return word[: colon.start()], _COMMA.split(word[colon.end() :])
    return word, []


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    key = key.strip().replace(" ", "-")
    known = (DEVICE, VERSION, *key_names())
    if key not in known:
        raise PowerlabError(f"there is no key {key!r}{meant(key, known)}; choose from: {', '.join(known)}.")
    return key, value.strip()


def _all_sweeps(args: argparse.Namespace, device: str | None) -> tuple[SweepRuns, ...]:
    """Return every stored sweep, of one device or of all, the oldest first."""
    with open_source(args) as source:
        records = [one for one in source.sweeps(SweepChoice()) if device in {None, one.device_name}]
        source.say(counted(len(records), "sweep"))
        return tuple(
            SweepRuns(
                id=record.id,
                device=record.device_name,
                simulated=record.simulated,
                plan=record.plan,
                runs=tuple(source.runs(RunChoice(sweep_id=record.id))),
            )
            for record in reversed(records)
        )


def _fits(sweep: SweepRuns, run: Run, wanted: dict[str, str]) -> bool:
    return all(_value(sweep, run, key) == value for key, value in wanted.items())


def _value(sweep: SweepRuns, run: Run, key: str) -> str:
    if key == DEVICE:
        return sweep.device
    if key == VERSION:
        return "" if run.conditions is None else run.conditions.measured_with
    return _READERS[key](run)


def _reader(title: str) -> Callable[[Run], str]:
    (dimension,) = (one for one in DIMENSIONS if one.title == title)
    return lambda run: dimension.read(run.point)


_READERS = {name: _reader(dimension.title) for name, dimension in zip(key_names(), DIMENSIONS, strict=True)}


def _nothing(word: str, sweeps: tuple[SweepRuns, ...], wanted: dict[str, str]) -> str:
    """Say which key does not fit any run, and which values there are."""
    for key, value in wanted.items():
        values = dict.fromkeys(filter(None, _values(sweeps, key)))
        if value not in values:
            there = f"; there are: {', '.join(values)}" if values else ""
            return f"no run of {word} has {key}={value}{meant(value, list(values))}{there}."
    return f"{word} has no runs; `powerlab sweep list` lists sweeps with theirs."


def _values(sweeps: tuple[SweepRuns, ...], key: str) -> Iterator[str]:
    return (_value(sweep, run, key) for sweep in sweeps for run in sweep.runs)
