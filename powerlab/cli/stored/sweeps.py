"""A stored sweep with all its runs: from a database, a server, or a file that ``powerlab profile`` wrote."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from powerlab.analysis.wording import counted
from powerlab.cli.stored.open_source import address_from, open_source
from powerlab.cli.stored.said import say
from powerlab.domain.device import Device
from powerlab.domain.order import in_plan_order
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import SweepRecord
from powerlab.sources.identifiers import sweep_id, sweep_ids
from powerlab.sources.opening import kept_files
from powerlab.sources.results_file import FileSource
from powerlab.sources.source import RunChoice, Source, SweepChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRuns:
    """A sweep and what is known of it.

    Attributes:
        id: its identifier.
        device: the device's name.
        simulated: whether that is a simulated board.
        plan: what was asked for.
        runs: in the plan's order.
        details: the device, as it describes itself; None where nobody asked.
    """

    id: str
    device: str
    simulated: bool
    plan: SweepPlan
    runs: tuple[Run, ...]
    details: Device | None = None


def find_sweep(word: str, args: argparse.Namespace) -> SweepRuns:
    """Return the sweep that a word of the command line means: an identifier, its first digits, or a results file.

    Raises:
        PowerlabError: there is none, there are several, or the file is none of powerlab's.
    """
    with _source_of(word, args) as source:
        return _runs_of(source, sweep_id(source, _identifier(word, source)))


@contextmanager
def opened_sweep(word: str, args: argparse.Namespace) -> Iterator[tuple[SweepRuns, Source]]:
    """Return the same together with its source, open, for what else is to be read of the sweep."""
    with _source_of(word, args) as source:
        yield _runs_of(source, sweep_id(source, _identifier(word, source))), source


def find_sweeps(word: str, args: argparse.Namespace, *, detailed: bool = False) -> tuple[SweepRuns, ...]:
    """Return the sweeps that a word means: as :func:`find_sweep`, and all those of a campaign.

    Args:
        word: of the command line.
        args: the options.
        detailed: whether the devices' descriptions are read, too.

    Raises:
        PowerlabError: there is none, the word is ambiguous, or the file is none of powerlab's.
    """
    with _source_of(word, args) as source:
        found = sweep_ids(source, _identifier(word, source))
        return tuple(_runs_of(source, each, detailed=detailed) for each in found)


@contextmanager
def _source_of(word: str, args: argparse.Namespace) -> Iterator[Source]:
    """Open the file that the word is, or else the source of the options.

    A sweep that this machine has measured is found in its results file where the local database lacks it.
    """
    if Path(word).is_file():
        yield FileSource([Path(word)])
        return
    kept = kept_files(word) if word and address_from(args) is None else []
    with open_source(args) as source:
        yield FileSource(kept) if kept and not source.identifiers(word) else source


def _identifier(word: str, source: Source) -> str:
    """Return the identifier of the only sweep in a file that the word names, else the word."""
    return next(source.sweeps(SweepChoice())).id if Path(word).is_file() else word


def _runs_of(source: Source, found: str, *, detailed: bool = False) -> SweepRuns:
    sweep = runs_of(source, source.sweep(found), detailed=detailed)
    say(source, f"sweep {found}, {counted(len(sweep.runs), 'run')}")
    return sweep


def runs_of(source: Source, record: SweepRecord, *, detailed: bool = False) -> SweepRuns:
    """Return a sweep of a source with its runs."""
    runs = list(source.runs(RunChoice(sweep_id=record.id)))
    in_plan_order(runs, record.plan)
    return SweepRuns(
        id=record.id,
        device=record.device_name,
        simulated=record.simulated,
        plan=record.plan,
        runs=tuple(runs),
        details=source.device(record.id) if detailed else None,
    )
