"""Sets of runs as the command line names them (:mod:`powerlab.analysis.run_selection`), and files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from powerlab.analysis.run_selection import DEVICE, Selection, selection
from powerlab.analysis.sets import RunSet
from powerlab.analysis.wording import counted
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.cli.stored.sweeps import SweepRuns, find_sweeps, runs_of
from powerlab.domain.errors import PowerlabError
from powerlab.sources.source import SweepChoice

GRAMMAR = """\
A SET is a sweep, or some runs of it (SWEEP:KEY=VALUE,KEY=VALUE), or all stored runs that fit (KEY=VALUE,...). A SWEEP
is an id or a unique prefix of one (see `powerlab sweep list`), a campaign, or a results file of `powerlab profile`. A
KEY is device, version (of powerlab), or a dimension: model, engine, precision, batch, threads, mode and so on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSet:
    """A set of runs.

    Attributes:
        runs: the runs.
        selected: the dimensions of its points by which it was selected.
        sweeps: whole, those that the runs are of.
    """

    runs: RunSet
    selected: tuple[str, ...]
    sweeps: tuple[SweepRuns, ...]


def ignored_dimensions(sets: Sequence[NamedSet], args: argparse.Namespace) -> tuple[str, ...]:
    """Return the dimensions in which points of different sets may differ: by ``--ignore``, and by their selections."""
    return tuple(dict.fromkeys((*args.ignore, *(title for one in sets for title in one.selected))))


def find_sets(words: Sequence[str], args: argparse.Namespace, *, detailed: bool = False) -> list[NamedSet]:
    """Return the runs that words of the command line mean; a sweep that several name is read once.

    Args:
        words: each as :data:`GRAMMAR` says.
        args: the options.
        detailed: whether the devices' descriptions are read, too.

    Raises:
        PowerlabError: there is no such sweep or key, or no run fits.
    """

    @cache
    def read(sweep: str | None, device: str | None) -> tuple[SweepRuns, ...]:
        if sweep is None:
            return _all_sweeps(args, device, detailed=detailed)
        return find_sweeps(sweep, args, detailed=detailed)

    return [_set_of(word, read) for word in words]


def _set_of(word: str, read: Callable[[str | None, str | None], tuple[SweepRuns, ...]]) -> NamedSet:
    meant = Selection(word=word, sweep=word, wanted={}) if Path(word).is_file() else selection(word)
    everywhere = meant.wanted and not meant.sweep
    sweeps = read(None, meant.wanted.get(DEVICE)) if everywhere else read(meant.sweep, None)
    found = [(sweep, run) for sweep in sweeps for run in sweep.runs if meant.fits(sweep.device, run)]
    if not found:
        raise PowerlabError(meant.why_nothing([(sweep.device, run) for sweep in sweeps for run in sweep.runs]))
    return NamedSet(
        runs=RunSet(
            label=word,
            runs=tuple(run for _, run in found),
            devices=frozenset((sweep.device, sweep.simulated) for sweep, _ in found),
        ),
        selected=meant.dimensions,
        sweeps=tuple({sweep.id: sweep for sweep, _ in found}.values()),
    )


def _all_sweeps(args: argparse.Namespace, device: str | None, *, detailed: bool) -> tuple[SweepRuns, ...]:
    """Return every stored sweep, of one device or of all, the oldest first."""
    with open_source(args) as source:
        records = [one for one in source.sweeps(SweepChoice()) if device in {None, one.device_name}]
        say(source, counted(len(records), "sweep"))
        return tuple(runs_of(source, record, detailed=detailed) for record in reversed(records))
