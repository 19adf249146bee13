"""``powerlab export``: stored runs and their traces as CSV, NDJSON or Parquet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

from powerlab.cli.arguments.stored_runs import add_filter_arguments, add_source_arguments
from powerlab.cli.stored.open_source import open_source
from powerlab.cli.stored.runs import chosen
from powerlab.cli.stored.said import say
from powerlab.domain.errors import PowerlabError
from powerlab.sources.identifiers import run_id, sweep_id
from powerlab.sources.source import written_runs

DESCRIPTION = "Write stored runs, or the traces of a sweep or run, to a file or to standard output."

EPILOG = """\
exit status: 0 success; 2 the file cannot be written, or the source cannot be used

CSV and Parquet have one row per metric, with unit, 95 % interval and provenance, or with --traces one row per sample.
NDJSON has one document per run, or per chunk of samples. docs/exports.md lists the columns.

examples:
  powerlab export --output runs.csv
  powerlab export --format ndjson --sweep SWEEP > runs.ndjson
  powerlab export --format parquet --output runs.parquet --from http://server:8765
  powerlab export --traces --run RUN --format parquet --output traces.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--format", choices=("csv", "ndjson", "parquet"), default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--traces", action="store_true", help="export the recorded traces instead of the metrics")
    parser.add_argument("--run", metavar="RUN", dest="run_id", help="only traces of this run (with --traces)")
    add_filter_arguments(parser)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return export(args)


T = TypeVar("T")


def export(args: argparse.Namespace) -> int:
    """Export runs or traces.

    Raises:
        PowerlabError: the file cannot be written, the source cannot be used, or the options contradict each other.
    """
    if args.run_id is not None and not args.traces:
        raise PowerlabError("--run needs --traces; to print one run, use `powerlab runs show RUN --json`.")
    if args.traces and (args.model or args.verdict):
        raise PowerlabError("--traces can only be filtered by --sweep or --run; omit --model and --verdict.")
    parts = _begun(_parts(args))
    if args.output is None:
        _write(sys.stdout.buffer, parts)
        return 0
    try:
        with Path(args.output).open("wb") as file:
            _write(file, parts)
    except OSError as error:
        raise PowerlabError(
            f"cannot write --output {args.output} ({error.strerror}); choose a file in an existing, writable directory."
        ) from error
    return 0


def _write(file: BinaryIO, parts: Iterable[bytes]) -> None:
    for part in parts:
        file.write(part)
    file.flush()


def _begun(parts: Iterator[T]) -> Iterator[T]:
    """Fetch the first part now, so that a failing database or server leaves no partial file."""
    first = next(parts, None)
    return parts if first is None else chain((first,), parts)


def _parts(args: argparse.Namespace) -> Iterator[bytes]:
    """Yield the table in pieces, and say at the end where it came from."""
    with open_source(args) as source:
        if args.traces:
            sweep = None if args.sweep is None else sweep_id(source, args.sweep)
            run = None if args.run_id is None else run_id(source, args.run_id)
            yield from source.traces(args.format, sweep, run)
        else:
            choices = chosen(source, args)
            yield from (
                source.table_of_runs(args.format, choices[0])
                if len(choices) == 1
                else written_runs(args.format, chain.from_iterable(map(source.runs, choices)))
            )
        say(source, f"{'traces' if args.traces else 'runs'} as {args.format}")
