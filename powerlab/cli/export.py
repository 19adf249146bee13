"""``powerlab export``: stored runs as CSV or NDJSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from powerlab.cli.runs import add_filter_arguments, add_source_arguments

if TYPE_CHECKING:
    from powerlab.domain.run import Run

_EPILOG = """\
exit status: 0 written; 2 the file cannot be written, or the database or server cannot be used

CSV has a line a figure, with unit, 95 % interval and provenance; NDJSON a JSON document a run.

examples:
  powerlab export --output runs.csv
  powerlab export --format ndjson --sweep SWEEP > runs.ndjson
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "export",
        help="write stored runs as CSV or NDJSON",
        description="Write stored runs to a file or to standard output.",
        epilog=_EPILOG,
    )
    parser.add_argument("--format", choices=("csv", "ndjson"), default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", help="where to (default: standard output)")
    add_filter_arguments(parser)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import sys
    from pathlib import Path

    from powerlab.cli.run_source import stored_runs
    from powerlab.domain.errors import PowerlabError
    from powerlab.protocol.export import csv_lines, ndjson_lines

    runs = _begun(stored_runs(args))
    lines = csv_lines(runs) if args.format == "csv" else ndjson_lines(runs)
    if args.output is None:
        sys.stdout.writelines(lines)
        return 0
    try:
        with Path(args.output).open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)
    except OSError as error:
        raise PowerlabError(
            f"--output {args.output} cannot be written ({error.strerror}); give a file in an existing folder of yours."
        ) from error
    return 0


def _begun(runs: Iterator[Run]) -> Iterator[Run]:
    """Ask for the first run now: a database or server that cannot be used must leave nothing half written."""
    first = next(runs, None)
    return runs if first is None else chain((first,), runs)
