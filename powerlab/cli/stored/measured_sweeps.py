"""The stored sweeps that a word of the command line means: one sweep, those of a campaign, or all of a model."""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from powerlab.analysis.operating_point.devices import MeasuredSweep, check_run_count
from powerlab.analysis.searched import set_aside
from powerlab.analysis.wording import counted
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.cli.stored.sweeps import find_sweeps
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.records import SweepRecord
from powerlab.sources.identifiers import device_id
from powerlab.sources.opening import kept_files
from powerlab.sources.source import RunChoice, Source, SweepChoice

_LOOKED_AT = 200
"""Sweeps whose models are named to someone who mistyped one: the newest."""


def find_measured(word: str, args: argparse.Namespace) -> tuple[MeasuredSweep, ...]:
    """Return the sweeps that a word means; of a model those of ``--device``, or of every device.

    Raises:
        PowerlabError: there are none, or they have too many runs.
    """
    if not _may_be_model(word) or not (found := _of_model(word, args)):
        if args.device is not None:
            raise PowerlabError(
                f"--device chooses among the runs of a model, and no run of a model {word!r} is stored."
            )
        found = tuple(
            MeasuredSweep(
                sweep_id=sweep.id,
                device_id=sweep.device,
                device_name=sweep.device,
                simulated=sweep.simulated,
                runs=sweep.runs,
                aside=set_aside(sweep.runs, sweep.plan),
            )
            for sweep in find_sweeps(word, args)
        )
    return found


def _may_be_model(word: str) -> bool:
    """Whether a word is not the path of a results file."""
    return not Path(word).is_file() or word.endswith(".onnx")


def _of_model(word: str, args: argparse.Namespace) -> tuple[MeasuredSweep, ...]:
    with open_source(args) as source:
        device = None if args.device is None else device_id(source, args.device)
        records = [one for one in source.sweeps(SweepChoice(model=word, device_id=device)) if one.stored_run_count]
        if not records and args.device is None:
            _check_known(source, word)
        check_run_count(sum(record.stored_run_count for record in records), word)
        found = tuple(_measured(source, record, word) for record in records)
        if found:
            runs = counted(sum(len(sweep.runs) for sweep in found), "run")
            say(source, f"{counted(len(found), 'sweep')} of {word}, {runs}")
    return found


def _measured(source: Source, record: SweepRecord, model: str) -> MeasuredSweep:
    runs = tuple(source.runs(RunChoice(sweep_id=record.id, model=model)))
    return MeasuredSweep(
        sweep_id=record.id,
        device_id=record.device_id,
        device_name=record.device_name,
        simulated=record.simulated,
        runs=runs,
        aside=set_aside(runs, record.plan),
    )


def _check_known(source: Source, word: str) -> None:
    """Refuse a word that means neither a sweep nor a model.

    Raises:
        PowerlabError: that is so; names the models that there are.
    """
    if source.identifiers(word) or kept_files(word):
        return
    newest = islice(source.sweeps(SweepChoice()), _LOOKED_AT)
    models = sorted({model for sweep in newest if sweep.stored_run_count for model in sweep.plan.models})
    there = f"; models measured there: {', '.join(models)}" if models else ""
    raise PowerlabError(f"there is no sweep or model {word!r} in {source.name}{meant(word, models)}{there}.")
