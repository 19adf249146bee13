"""Stored runs, wherever ``--from`` says that they are."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from powerlab.analysis.wording import counted
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.domain.run import Run, Verdict
from powerlab.sources.identifiers import run_id, sweep_ids
from powerlab.sources.source import RunChoice, Source


def stored_runs(args: argparse.Namespace) -> Iterator[Run]:
    """Yield the runs that ``--sweep``, ``--model`` and ``--verdict`` choose, in the order in which they arrived."""
    with open_source(args) as source:
        count = 0
        for choice in chosen(source, args):
            for run in source.runs(choice):
                count += 1
                yield run
        say(source, counted(count, "run"))


def chosen(source: Source, args: argparse.Namespace) -> list[RunChoice]:
    """Return the choices that ``--sweep``, ``--model`` and ``--verdict`` make; a campaign has one for each sweep."""
    verdict = Verdict(args.verdict) if args.verdict else None
    sweeps = (None,) if args.sweep is None else sweep_ids(source, args.sweep)
    return [RunChoice(sweep_id=sweep, model=args.model, verdict=verdict) for sweep in sweeps]


def stored_run(args: argparse.Namespace) -> Run:
    """Return the run ``args.run_id``; raises PowerlabError where there is none."""
    with open_source(args) as source:
        run = source.run(run_id(source, args.run_id))
        say(source, f"run {run.id}")
        return run
