"""Carries out ``powerlab profile``: host, plan, progress, results, answer."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.text import Text

from powerlab.analysis.carbon import Factors
from powerlab.analysis.searched import runs_in_contest
from powerlab.analysis.summary import searched_figures, summarise
from powerlab.backends.packages import PACKAGES
from powerlab.backends.registry import BACKENDS
from powerlab.cli import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK
from powerlab.cli.arguments.carbon_and_cost import factors_from, points_document, points_in_words
from powerlab.cli.arguments.host import host_options, open_host
from powerlab.cli.arguments.output_file import writable
from powerlab.cli.arguments.plan import named_modes, plan_from
from powerlab.cli.commands.profile.engines import ALL_ENGINES, refuses_here, with_engines_here
from powerlab.cli.output.console import print_neatly, table_console
from powerlab.cli.output.live_sweep import LiveSweep
from powerlab.cli.output.sweep_report import answer, complete, document, notes
from powerlab.cli.output.sweep_table import sweep_table
from powerlab.cli.process.interrupts import orderly_ends, uninterrupted
from powerlab.cli.stored.local_database import StoredSweep, begin, open_local
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import stored_model
from powerlab.domain.order import in_plan_order
from powerlab.domain.preflight import check_plan
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import WorkloadKind
from powerlab.engine.frontend.load import check_name
from powerlab.measure.labelled_images import read_labelled_images
from powerlab.state_dir import state_dir
from powerlab.sweep.cooling import TELL_PERIOD_S
from powerlab.sweep.events import CoolingDown, RunFinished, RunStarted, SearchEnded, SweepExtended, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.meter import choose_meter
from powerlab.sweep.runner import run_sweep
from powerlab.sweep.until import check_until


def profile(args: argparse.Namespace) -> int:
    """Run the sweep and print its results; returns the exit status."""
    factors = factors_from(args)
    with orderly_ends(), open_host(args) as host:
        device, capabilities = host.device(), host.capabilities(named_modes(args))
        plan = plan_from(args, device, capabilities)
        if plan.proposed_modes:
            capabilities = host.capabilities(plan.modes)
        check_plan(plan, device, capabilities, (*BACKENDS, ALL_ENGINES))
        if plan.until_percent:
            check_until(plan, choose_meter(host.sysroot, capabilities, plan.sample_period_s, plan.processors))
        plan = with_engines_here(plan, refuses_here(plan, str(host.sysroot.base)))
        output = writable("--output", args.output)
        if args.labelled_images is not None:
            if plan.workload is not WorkloadKind.INFERENCE:
                raise PowerlabError(
                    "labelled images are for inference; leave out --labelled-images where you train, and ask "
                    "`powerlab learn` for the energy of training to an accuracy."
                )
            host.labelled_images = read_labelled_images(Path(args.labelled_images))
        for model in plan.models if set(plan.engines) <= set(PACKAGES) else ():
            if stored_model(model) is None:  # what lies on a server is refused in words of its own
                check_name(model)
        made = measure_and_keep(plan, host, device, capabilities, args.database)
        show(made, device, capabilities, plan, args, factors=factors, output=output)
    print(f"powerlab: {made.words}", file=sys.stderr)
    return made.exit_status


def show(
    made: Made,
    device: Device,
    capabilities: Capabilities,
    plan: SweepPlan,
    args: argparse.Namespace,
    *,
    factors: Factors | None = None,
    output: Path | None = None,
) -> None:
    """Print a sweep as a table with its answer, or as JSON, and write that JSON into a file that is named."""
    factors = factors or Factors()
    said = document(made.sweep_id, device, plan, made.runs)
    if factors != Factors():
        said["costs"] = points_document(summarise(made.runs), factors)
    whole = msgspec.json.format(msgspec.json.encode(said), indent=2)
    if output is not None:
        output.write_bytes(whole + b"\n")
    if args.json:
        print(whole.decode())
        return
    console, summaries = table_console(), summarise(made.runs)
    if made.runs:
        print_neatly(console, sweep_table(summaries, console.width))
    sentences = (
        *notes(made.runs, capabilities.total, plan, interrupted=made.interrupted),
        *answer(runs_in_contest(made.runs, plan), host_options(args)),
        *points_in_words(summaries, factors),
    )
    print_neatly(console, *map(Text, sentences))


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A sweep that was measured, or as much of it as there was time for.

    Attributes:
        sweep_id: its identifier, in the database too where there is one.
        runs: in the plan's order.
        run_count: how many were wanted.
        interrupted: whether Ctrl-C ended it.
        places: where it is kept.
    """

    sweep_id: str
    runs: list[Run]
    run_count: int
    interrupted: bool
    places: tuple[str, ...]

    @property
    def words(self) -> str:
        """What was measured and where it is saved, in a sentence."""
        kept = f", saved in {' and in '.join(self.places)}" if self.places else ""
        return f"{'interrupted; ' * self.interrupted}{len(self.runs)} of {self.run_count} runs finished{kept}."

    @property
    def exit_status(self) -> int:
        """The exit status that says so."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        return EXIT_OK if complete(self.runs, self.run_count) else EXIT_INCOMPLETE


def measure_and_keep(
    plan: SweepPlan, host: Host, device: Device, capabilities: Capabilities, address: str | None
) -> Made:
    """Carry out a plan that was checked, and keep every run at once: in a results file, and in the database.

    Args:
        plan: what to run.
        host: where.
        device: what that is.
        capabilities: what it can do.
        address: the database, ``none``, or None for the local one where there can be one.

    Raises:
        PowerlabError: it cannot be carried out, or not be kept.
    """
    store = open_local(address)
    stored = None if store is None else begin(store, device, capabilities, plan)
    return measure_into(plan, host, device, str(uuid.uuid4()) if stored is None else stored.sweep_id, stored)


def measure_into(
    plan: SweepPlan,
    host: Host,
    device: Device,
    sweep_id: str,
    stored: StoredSweep | None,
    *,
    earlier: Sequence[Run] = (),
) -> Made:
    """Do as :func:`measure_and_keep` for a sweep that has its identifier, and may have runs.

    Args:
        plan: what to run, earlier runs included.
        host: where.
        device: what that is.
        sweep_id: the sweep.
        stored: the sweep in the database, held by this process; None where it is not in one.
        earlier: the runs that it has, which are not made again.
    """
    runs = list(earlier)
    wanted = _Wanted(run_count=len(plan.points()) * plan.repeats)
    interrupted = False
    try:
        with _ended(stored), closing(ResultsFile(state_dir() / "sweeps", sweep_id, device, plan, earlier)) as results:
            _measure(plan, sweep_id, host, _Keeper(results, stored, runs), wanted)
    except KeyboardInterrupt:
        interrupted = True
    in_plan_order(runs, plan)
    places = [str(results.path)] if runs else []
    if stored is not None and stored.broken is None:
        places.append(stored.store.address)
    return Made(
        sweep_id=sweep_id,
        runs=runs,
        run_count=wanted.run_count,
        interrupted=interrupted,
        places=tuple(places),
    )


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """How many runs there are to make: a sweep may go on beyond its plan."""

    run_count: int


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Where a finished run goes: the disk first."""

    file: ResultsFile
    stored: StoredSweep | None
    runs: list[Run]

    def keep(self, event: RunFinished) -> None:
        """Keep a run everywhere, also when Ctrl-C comes meanwhile."""
        with uninterrupted():
            self.runs.append(event.run)
            try:
                self.file.add(event.run)
            finally:
                if self.stored is not None:
                    self.stored.add(event.run, event.traces)


@contextmanager
def _ended(stored: StoredSweep | None) -> Iterator[None]:
    """Tell the database how the sweep ended."""
    failure: str | None = "broken off by an error in powerlab; the runs measured before it are kept."
    try:
        yield
        failure = None
    except PowerlabError as error:
        failure = str(error)
        raise
    except KeyboardInterrupt:
        failure = "interrupted from the keyboard; the runs measured before it are kept."
        raise
    finally:
        if stored is not None:
            stored.finish(failure)


def _measure(plan: SweepPlan, sweep_id: str, host: Host, keeper: _Keeper, wanted: _Wanted) -> None:
    """Carry out the plan and show it on standard error."""
    done = {(run.point.id, run.repeat): searched_figures(run) for run in keeper.runs}
    with LiveSweep() as live, closing(run_sweep(plan, sweep_id, host, done)) as events:
        progress = live.progress
        live.add(keeper.runs)
        task = progress.add_task("checking the models", total=None)
        for event in events:
            if isinstance(event, SweepStarted):
                progress.update(task, total=event.run_count)
                most = "at most " if plan.search_percent else ""
                more = f", and more until img/s/W is known to ±{plan.until_percent:g} %" if plan.until_percent else ""
                live.print(f"{most}{event.run_count} runs, {_span(event.expected_s, event.longest_s)}{more}")
                if event.advice:
                    live.print(Text(event.advice))
            elif isinstance(event, SweepExtended | SearchEnded):
                wanted.run_count = len(done) + event.run_count
                progress.update(task, total=event.run_count)
                live.print(Text(event.detail))
            elif isinstance(event, CoolingDown):
                progress.update(task, description=f"cooling down, {event.hottest}")
                if event.waited_s < TELL_PERIOD_S:
                    live.print(Text(event.detail))
            elif isinstance(event, RunStarted):
                progress.update(task, description=_doing(event.point, event.repeat))
            elif isinstance(event, RunFinished):
                keeper.keep(event)
                live.add((event.run,))
                progress.update(task, completed=event.index)


def _doing(point: Point, repeat: int) -> str:
    workload = point.workload
    return f"{workload.model} batch {workload.batch_size} threads {point.threads} {point.mode} repeat {repeat + 1}"


def _span(least_s: float, most_s: float) -> str:
    """Say how long a sweep takes; one figure where both are about the same."""
    if most_s < 1.2 * least_s:
        return f"about {_duration(least_s)}"
    return f"{_duration(least_s)} to {_duration(most_s)}, depending on how soon the device is steady"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
