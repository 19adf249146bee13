"""Carries out ``powerlab profile``: host, plan, progress, results, answer."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from powerlab.analysis.summary import summarise
from powerlab.boards.simulator import simulated_board
from powerlab.cli import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK
from powerlab.cli.plans import plan_from
from powerlab.cli.report import answer, complete, document, notes
from powerlab.cli.results import Results, state_dir
from powerlab.cli.tables import sweep_table
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import TotalFormula
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.sweep.events import RunFinished, RunStarted, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot


def profile(args: argparse.Namespace) -> int:
    """Run the sweep and print its results; returns the exit status."""
    with _host(args) as host:
        device, capabilities = host.device(), host.capabilities()
        plan = plan_from(args, device, capabilities)
        sweep_id = str(uuid.uuid4())
        output = _writable(args.output)
        runs: list[Run] = []
        interrupted = False
        with Results(args.store, sweep_id, device, capabilities, plan) as results:
            try:
                run_count = _measure(plan, sweep_id, host, results, runs)
            except KeyboardInterrupt:
                interrupted = True
                run_count = len(plan.points()) * plan.repeats
        whole = document(sweep_id, device, plan, runs)
        if output is not None:
            output.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
        if args.json:
            print(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode())
        else:
            _print(runs, results.path, capabilities.total)
    if interrupted:
        print(f"powerlab: interrupted; {len(runs)} of {run_count} runs are kept in {results.path}.", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_OK if complete(runs, run_count) else EXIT_INCOMPLETE


@contextmanager
def _host(args: argparse.Namespace) -> Iterator[Host]:
    """Yield where the sweep runs; a simulated board keeps its mode journal in its own tree."""
    if args.board is not None:
        with simulated_board(args.board) as sysroot:
            yield Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"))
    elif args.sysroot is not None:
        sysroot = Sysroot(Path(args.sysroot).absolute())
        if not sysroot.base.is_dir():
            raise PowerlabError(f"--sysroot {args.sysroot} is no directory; give the root of a device's file tree.")
        yield Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"))
    else:
        yield Host(state_dir=state_dir())


def _writable(output: str | None) -> Path | None:
    """Return the path to write to in the end; refuse it now rather than after the sweep."""
    if output is None:
        return None
    path = Path(output)
    try:
        path.open("ab").close()
    except OSError as error:
        raise PowerlabError(f"--output {output} cannot be written: {error.strerror}.") from error
    return path


def _measure(plan: SweepPlan, sweep_id: str, host: Host, results: Results, runs: list[Run]) -> int:
    """Carry out the plan with a progress bar on standard error; return how many runs it has."""
    run_count = 0
    with _progress() as progress, closing(run_sweep(plan, sweep_id, host)) as events:
        task = progress.add_task("checking the models", total=None)
        for event in events:
            if isinstance(event, SweepStarted):
                run_count = event.run_count
                progress.update(task, total=run_count)
                progress.print(f"{run_count} runs, about {_duration(event.expected_s)}")
            elif isinstance(event, RunStarted):
                progress.update(task, description=_doing(event.point, event.repeat))
            elif isinstance(event, RunFinished):
                runs.append(event.run)
                results.add(event.run, event.traces)
                progress.update(task, completed=event.index)
    return run_count


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def _doing(point: Point, repeat: int) -> str:
    workload = point.workload
    return f"{workload.model} batch {workload.batch_size} threads {point.threads} {point.mode} repeat {repeat + 1}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _print(runs: list[Run], results: Path, total: TotalFormula | None) -> None:
    console = Console()
    if runs:
        console.print(sweep_table(summarise(runs)))
    for line in (*notes(runs, total), *answer(runs), f"Every run is kept in {results}."):
        console.print(Text(line))
