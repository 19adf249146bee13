"""Sets of runs in words: ``SWEEP``, ``SWEEP:engine=ncnn``, ``device=xavier-3,mode=15W``.

The command line and the dashboard's address understand the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run

DEVICE, VERSION = "device", "version"
_SELECTION = re.compile(r"[a-z][a-z -]*=")
_COMMA = re.compile(r",(?=[a-z][a-z -]*=)")
"""A comma in front of another key; others belong to a value, such as a list of cores."""

RunOf = tuple[str, Run]
"""The name of a device and a run that it made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a word means.

    Attributes:
        word: as it was written.
        sweep: the sweep that it begins with; empty where all stored runs are meant.
        wanted: values by key; none where a whole sweep is meant.
    """

    word: str
    sweep: str
    wanted: Mapping[str, str]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions of points by which it selects, by their titles."""
        return tuple(key.replace("-", " ") for key in self.wanted if key not in {DEVICE, VERSION})

    def fits(self, device: str, run: Run) -> bool:
        """Return whether a run of a device is selected."""
        return all(_value(device, run, key) == value for key, value in self.wanted.items())

    def why_nothing(self, runs: Sequence[RunOf]) -> str:
        """Return in a sentence which key does not fit any of the runs, and which values there are."""
        for key, value in self.wanted.items():
            values = dict.fromkeys(filter(None, (_value(device, run, key) for device, run in runs)))
            if value not in values:
                there = f"; there are: {', '.join(values)}" if values else ""
                what = f"run of {self.word}" if self.sweep else "stored run"
                return f"no {what} has {key}={value}{meant(value, list(values))}{there}."
        return f"{self.word} has no runs; `powerlab sweep list` lists sweeps with theirs."


def selection(word: str) -> Selection:
    """Return what a word means; raises PowerlabError where it has an unknown key, or no sweep before the colon."""
    place, chosen = _split(word)
    if chosen and word.startswith(":"):
        raise PowerlabError(f"{word} names no sweep before the colon; leave out the colon to choose among all runs.")
    return Selection(word=word, sweep=place, wanted=dict(map(_pair, chosen)))


def narrowed(word: str, title: str) -> str:
    """Return a word that selects by one more dimension, given by its title: ``SWEEP:engine=ncnn,mode=VALUE``."""
    _, chosen = _split(word)
    return f"{word}{',' if chosen else ':'}{title.replace(' ', '-')}=VALUE"


def key_names() -> tuple[str, ...]:
    """Return the keys that are dimensions, as they are written here."""
    return tuple(dimension.title.replace(" ", "-") for dimension in DIMENSIONS)


def _split(word: str) -> tuple[str, list[str]]:
    """Return the sweep that a word begins with, which may be empty, and its selections."""
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


def _value(device: str, run: Run, key: str) -> str:
    if key == DEVICE:
        return device
    if key == VERSION:
        return "" if run.conditions is None else run.conditions.measured_with
    return _READERS[key](run)


def _reader(title: str) -> Callable[[Run], str]:
    (dimension,) = (one for one in DIMENSIONS if one.title == title)
    return lambda run: dimension.read(run.point)


_READERS = {name: _reader(dimension.title) for name, dimension in zip(key_names(), DIMENSIONS, strict=True)}
