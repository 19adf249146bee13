"""``powerlab audit``: recompute a stored run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from powerlab import __version__
from powerlab.analysis.dimensions import in_words
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.stored_runs import add_source_arguments
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.said import say
from powerlab.domain.errors import PowerlabError
from powerlab.measure.audit.audit import Audit
from powerlab.measure.audit.compare import Compared
from powerlab.measure.audit.mlperf import Ruled, Ruling
from powerlab.protocol.wire import encode
from powerlab.sources.identifiers import run_id

DESCRIPTION = """\
Recompute everything that is stored for a run from its samples and timings: percentiles, throughput, power, energy, idle
power, intervals, uncertainty budget, findings and verdict. Then check the run against each rule of MLPerf Power, and
say how to comply where it does not.
"""

EPILOG = """\
exit status: 0 every recomputed value equals the stored one, whatever MLPerf Power's rules say; 1 a value differs, or
the record is damaged; 2 there is no such run, or its record is too incomplete to audit

examples:
  powerlab runs list
  powerlab audit 3f2a91c0
  powerlab audit 3f2a91c0 --json
  powerlab audit 3f2a91c0 --from http://server:8765
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("run_id", metavar="RUN", help="run id, or a unique prefix of it")
    add_source_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return audit(args)


_WIDTH = 100
_STYLES = {Ruling.ACCEPTED: "green", Ruling.REJECTED: "red", Ruling.UNKNOWN: "yellow"}
_VERBS = {
    Ruling.ACCEPTED: "would accept this run",
    Ruling.REJECTED: "would reject this run",
    Ruling.UNKNOWN: "may accept this run; some rules cannot be checked here",
}


def audit(args: argparse.Namespace) -> int:
    """Audit one run and print the result; the exit status says whether every stored value was confirmed."""
    if args.run_id.endswith(".ndjson") or Path(args.run_id).is_file():
        raise PowerlabError(
            f"{args.run_id} is a results file, which has no samples; give the id of a run in the database "
            "(see `powerlab runs list`)."
        )
    found = _found(args)
    if args.json:
        print(msgspec.json.format(encode(found), indent=2).decode())
    else:
        console = table_console()
        console.width = min(console.width, _WIDTH)
        print_neatly(console, *_report(found))
    return EXIT_OK if found.equal else EXIT_INCOMPLETE


def _found(args: argparse.Namespace) -> Audit:
    with open_source(args) as source:
        found = source.audit(run_id(source, args.run_id))
        say(source, f"run {found.run.id}")
        return found


def _report(found: Audit) -> Iterator[RenderableType]:
    run = found.run
    yield Text(f"{run.id}: {in_words(run.point)}, repeat {run.repeat + 1}, {run.verdict}, started {run.started_at}")
    yield Text()
    yield _sentence(found)
    yield Padding(_compared_table(found.compared), (1, 0, 1, 2))
    different = [one for one in found.compared if not one.equal]
    for one in different:
        yield Padding(Text(f"{one.what}: {one.detail}", style="red"), (0, 0, 0, 2))
    measured_with = run.conditions.measured_with if run.conditions else ""
    if different and measured_with != __version__:
        yield Text(
            f"The run was measured with powerlab {measured_with}; this is {__version__}, whose methods may differ."
        )
    if found.mlperf_ruling is None:
        yield Text("The record is damaged, so nothing was recomputed.")
        return
    if different:
        yield Text()
    counts = ", ".join(f"{sum(one.ruling is ruling for one in found.mlperf)} {ruling}" for ruling in Ruling)
    yield Text(f"MLPerf Power {_VERBS[found.mlperf_ruling]} ({counts}).", style="bold")
    yield Padding(_mlperf_table(found.mlperf), (1, 0, 0, 2))


def _sentence(found: Audit) -> Text:
    if found.equal:
        return Text(
            f"Recomputed from {found.sample_count} samples and timings: every stored value is confirmed.",
            style="bold green",
        )
    wrong = sum(not one.equal for one in found.compared)
    return Text(f"{wrong} of {len(found.compared)} recomputed values differ from the stored ones.", style="bold red")


def _compared_table(compared: Sequence[Compared]) -> Table:
    table = plain_table("value", "result", "stored", "recomputed")
    for one in compared:
        table.add_row(
            Text(one.what),
            Text("equal" if one.equal else "differs", style="green" if one.equal else "bold red"),
            Text(one.stored),
            Text(one.recomputed),
        )
    return table


def _mlperf_table(rules: Sequence[Ruled]) -> Table:
    table = plain_table("rule", "ruling", "requirement", "this run")
    for one in rules:
        figure = Text(one.figure)
        if one.remedy:
            figure.append(f"\n→ {one.remedy}", style="dim")
        table.add_row(Text(one.rule), Text(one.ruling, style=_STYLES[one.ruling]), Text(one.asks), figure)
    return table
