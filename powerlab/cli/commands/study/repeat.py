"""Carries out ``powerlab study``: what cannot be repeated first, then the sweeps, then both tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import msgspec

from powerlab.backends.packages import PACKAGES, check_installed
from powerlab.backends.registry import BACKENDS
from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.host import open_host
from powerlab.cli.commands.profile.measure import Made, measure_and_keep
from powerlab.cli.commands.study.requirements import Trials, here
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.match_tables import match_document, show_matches
from powerlab.cli.output.sweep_table import format_figure
from powerlab.cli.process.interrupts import orderly_ends
from powerlab.domain.choices import meant
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.order import visits
from powerlab.domain.preflight import check_plan
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.rigour import Rigour
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Processor
from powerlab.measure.duration import expected_s
from powerlab.measure.output_check import OutputsDifferError
from powerlab.reports.text import figure_text
from powerlab.studies.latex import latex_document
from powerlab.studies.page import html_document
from powerlab.studies.planning import Planned, plan_study
from powerlab.studies.registry import STUDIES, find_study
from powerlab.studies.study import NotRepeated, Study
from powerlab.studies.table import NOTHING, Repeated, Row, column_title, compared, rows
from powerlab.sweep.host import Host
from powerlab.sweep.meter import choose_meter


def list_all(args: argparse.Namespace) -> int:
    """Print the studies."""
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(list(STUDIES.values())), indent=2).decode())
        return EXIT_OK
    table = plain_table("study", "what it is")
    for study in STUDIES.values():
        table.add_row(study.name, study.title)
    print_neatly(table_console(), table)
    return EXIT_OK


def repeat(args: argparse.Namespace) -> int:
    """Repeat one study, or say how it would be; returns the exit status.

    Raises:
        PowerlabError: there is no such study, nothing of it can be repeated here, or the folder cannot be written.
    """
    study = find_study(args.name)
    if args.quick and args.rigour not in {None, Rigour.QUICK}:
        raise PowerlabError(f"--quick is --rigour quick, but --rigour {args.rigour} was given; leave one of them out.")
    folder = None if args.output is None else _folder(args.output)
    named, engines = _named(args.modes), _engines(args.engine)
    with orderly_ends(), open_host(args) as host:
        device, capabilities = host.device(), host.capabilities(named)
        trial = SweepPlan(models=study.plans[0].models, threads=(1,), modes=named or (CURRENT_MODE_NAME,))
        check_plan(trial, device, capabilities)
        trials = Trials(choose_meter(host.sysroot, capabilities, trial.sample_period_s))
        facts = here(study, device, capabilities, args.model, trials)
        rigour = Rigour.QUICK if args.quick else Rigour(args.rigour or Rigour.STANDARD)
        planned = plan_study(study, facts, rigour=rigour, quick=args.quick, modes=named, engines=engines)
        for plan in planned.plans:
            check_plan(plan, device, capabilities, tuple(BACKENDS))
        _say(_outlook(study, planned, device, trials))
        if args.plan:
            return EXIT_OK
        made, left_out = _measured(planned.plans, host, args.database)
    repetition = _Repetition(
        study=study,
        repeated=[Repeated(sweep_id=one.sweep_id, device=device.name, runs=tuple(one.runs)) for one in made],
        not_repeated=(*planned.left_out, *left_out, *study.not_repeated),
        models=facts.models,
    )
    _report(args, folder, repetition)
    return max(one.exit_status for one in made)


def _named(words: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (words or "").split(",") if word.strip())


def _engines(words: str | None) -> tuple[str, ...]:
    named = _named(words)
    for name in named:
        if name not in BACKENDS:
            known = tuple(BACKENDS)
            raise PowerlabError(f"the engine {name!r} is not known{meant(name, known)}; one of: {', '.join(known)}.")
        if name in PACKAGES:
            check_installed(name)
    return named


def _measured(
    plans: Sequence[SweepPlan], host: Host, address: str | None
) -> tuple[Sequence[Made], Sequence[NotRepeated]]:
    """Carry out the sweeps one after the other; Ctrl-C ends the last of them.

    An engine that turns out to compute something else leaves its sweep, which goes on with the others.

    Raises:
        PowerlabError: nothing is left to measure.
    """
    made: list[Made] = []
    left_out: list[NotRepeated] = []
    device, waiting = host.device(), list(plans)
    while waiting:
        plan = waiting.pop(0)
        try:
            made.append(measure_and_keep(plan, host, device, host.capabilities(plan.modes), address))
        except OutputsDifferError as error:
            engines = tuple(engine for engine in plan.engines if engine != error.engine)
            if not (engines or made or waiting):
                raise
            without = replace(plan, engines=(error.engine,))
            left_out.append(NotRepeated(what=_words(without), why=str(error).partition(";")[0]))
            _say([f"Not repeated: {left_out[-1].what}, because {left_out[-1].why}."])
            waiting[:0] = [replace(plan, engines=engines)] if engines else []
            continue
        _say([f"powerlab: {made[-1].words}"])
        if made[-1].interrupted:
            break
    return made, left_out


def _outlook(study: Study, planned: Planned, device: Device, trials: Trials) -> list[str]:
    """Return what will be run, for how long, and what cannot be repeated here."""
    lines = [f"{study.title}.", f"Published figures: {study.source}."]
    for number, plan in enumerate(planned.plans, start=1):
        seconds = expected_s(plan, visits(plan), trials.meter.margin_s, trials.inference_s(plan))
        lines.append(
            f"Sweep {number} of {len(planned.plans)} on {device.name}, about {_minutes(seconds)}: {_words(plan)}."
        )
    left = (*planned.left_out, *study.not_repeated)
    return [*lines, *(f"Not repeated: {one.what}, because {one.why}." for one in left)]


def _words(plan: SweepPlan) -> str:
    on_gpu = plan.processors == (Processor.GPU,)
    place = " on the gpu" if on_gpu else ""
    threads = "" if on_gpu else f"threads {', '.join(map(str, plan.threads))}, "
    cores = f", cores {' and '.join(word or 'unnamed' for word in plan.cores)}" if len(plan.cores) > 1 else ""
    runs = len(plan.points()) * plan.repeats
    trained = f"training by {', '.join(plan.optimizers)}: " if plan.optimizers else ""
    slices = f", slices {', '.join(map(str, plan.slices))}" if max(plan.slices) > 1 else ""
    queues = f", queues {', '.join(map(str, plan.queues))}" if max(plan.queues) > 1 else ""
    return (
        f"{trained}{', '.join(plan.models)} in {', '.join(plan.precisions)} on {', '.join(plan.engines)}{place}, "
        f"batch {', '.join(map(str, plan.batch_sizes))}, {threads}modes {', '.join(plan.modes)}{cores}"
        f"{slices}{queues}; {runs} runs"
    )


def _minutes(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repetition:
    """A study, what was measured of it, and what was not."""

    study: Study
    repeated: Sequence[Repeated]
    not_repeated: Sequence[NotRepeated]
    models: Mapping[str, str]


def _report(args: argparse.Namespace, folder: Path | None, made: _Repetition) -> None:
    """Write the files and print the tables."""
    study, not_repeated = made.study, made.not_repeated
    table, matches = rows(study, made.repeated, made.models), compared(study, made.repeated)
    document = {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "sweeps": [one.sweep_id for one in made.repeated],
        "rows": table,
        "matches": [match_document(match) for match in matches],
        "not_repeated": not_repeated,
    }
    whole = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    if folder is not None:
        (folder / f"{study.name}.json").write_bytes(whole)
        (folder / f"{study.name}.tex").write_text(latex_document(study, table, matches), encoding="utf-8")
        (folder / f"{study.name}.html").write_text(html_document(study, table, matches, not_repeated), encoding="utf-8")
        _say([f"powerlab: {study.name}.tex, .html and .json written to {folder}."])
    if args.json:
        print(whole.decode(), end="")
        return
    _show(study, table)
    if matches:
        show_matches(matches, (study.compared, "against"))


def _show(study: Study, table: Sequence[Row]) -> None:
    console = table_console()
    for case, found in groupby(table, key=lambda row: row.case):
        console.print(case)
        shown = plain_table(
            "system", "conditions", *(column_title(name, study) for name in study.metrics), "provenance"
        )
        for row in found:
            software = "" if row.software == NOTHING else f", {row.software}"
            figures = [_figure(metric) for metric in row.figures]
            shown.add_row(f"{row.system}{software}", row.conditions, *figures, row.provenance)
        print_neatly(console, shown)
        console.print()


def _figure(metric: Metric | None) -> str:
    if metric is None or metric.provenance is not Provenance.PUBLISHED:
        return format_figure(metric)
    return figure_text(metric).value


def _folder(name: str) -> Path:
    """Return the folder to write to, made where it is missing; refuse it now rather than after the sweeps."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".powerlab-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise PowerlabError(
            f"cannot write --output {name} ({error.strerror}); choose a folder that you may write to."
        ) from error
    return path
